-- Wallets and their journal.
--
--     wallets   one row a wallet: the state after its last entry, and what an entry must continue: epoch, seq, head
--     entries   what happened, gapless and linked by hash; never changed, never deleted
--
-- The journal is cut into eight by the hash of the wallet, so that it grows evenly and parts can be moved to disks of their own later.
-- Between four and eight no difference could be measured. The wallets are one table: they don't grow with time, and every append would open all parts of them,
-- for about 40 µs a statement.

-- An enumeration and no CHECK: every append reads a CHECK anew, in a profile 3 % of a statement with one entry.
CREATE TYPE wallet_owner AS ENUM ('redis', 'postgres');
CREATE TYPE wallet_status AS ENUM ('active', 'frozen', 'closed');
CREATE TYPE entry_kind AS ENUM (
  'credit', 'debit', 'hold', 'capture', 'tick', 'extend', 'settle', 'release', 'expire', 'refund', 'freeze', 'unfreeze', 'limit', 'close',
  -- Uses a key up and moves nothing: what was meant under that key will not happen any more.
  'void'
);

CREATE TABLE wallets (
  -- HMAC of tenant and id under the secret in `settings`: the same name as in Redis.
  ref uuid NOT NULL PRIMARY KEY,
  tenant text NOT NULL,
  id text NOT NULL,
  currency text NOT NULL,
  metadata text,
  opened_at bigint NOT NULL,
  initial_limit bigint NOT NULL,
  -- What the chain of its entries begins with.
  genesis bytea NOT NULL,
  -- timeline of this Postgres × 10^12 + how far it was raised since, by chance (src/journal/epochs.ts): see timeline_epoch().
  epoch bigint NOT NULL,
  -- Who decides under this epoch.
  owner wallet_owner NOT NULL,
  -- Was anything acknowledged from memory? Then Redis may know more than this row.
  memory boolean NOT NULL DEFAULT false,
  seq bigint NOT NULL,
  head bytea NOT NULL,
  at bigint NOT NULL,
  available bigint NOT NULL,
  reserved bigint NOT NULL,
  credit_limit bigint NOT NULL,
  status wallet_status NOT NULL,
  -- Lower bounds. They move seldom on purpose: a changed value in an index triples the WAL of an update.
  due bigint NOT NULL,
  since bigint NOT NULL,
  -- The seq before the last append: how an append learns where it began.
  appended_after bigint NOT NULL DEFAULT 0
)
-- Room in every page, so that a new state finds place beside the old one and no index is touched.
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- 283 bytes a row and 157 in its two indexes, with keys and hold ids of 36 characters: what does not apply is null and takes no room.
--
-- What else was tried for the indexes, in CPU of Postgres and WAL an entry (20 µs, 730 bytes): a bigint for the wallet in place of its
-- ref, about 1.5 µs and 35 bytes less, not kept because every read by ref would have to look the bigint up first; a 128-bit hash of the
-- key in place of the key, nothing and 45 bytes less; no unique index on the key at all, 2.5 µs less. Rounds lay 2 µs apart.
CREATE TABLE entries (
  wallet uuid NOT NULL,
  seq bigint NOT NULL,
  epoch bigint NOT NULL,
  at bigint NOT NULL,
  amount bigint NOT NULL,
  available_delta bigint NOT NULL,
  reserved_delta bigint NOT NULL,
  available bigint NOT NULL,
  reserved bigint NOT NULL,
  hold_amount bigint,
  hold_captured bigint,
  hold_left bigint,
  hold_expires_at bigint,
  hold_refunded bigint,
  of_seq bigint,
  of_refunded bigint,
  kind entry_kind NOT NULL,
  hash bytea NOT NULL,
  -- Compared as bytes, whatever the database's collation: equal keys are equal bytes, and no locale is asked.
  key text COLLATE "C" NOT NULL,
  hold text COLLATE "C",
  counter text NOT NULL,
  params text NOT NULL,
  metadata text,
  PRIMARY KEY (wallet, seq),
  -- For good: the guarantee behind idempotency. Redis's recent results are only the fast way.
  UNIQUE (wallet, key)
) PARTITION BY HASH (wallet);

DO $$
BEGIN
  FOR part IN 0..7 LOOP
    EXECUTE format('CREATE TABLE entries_%s PARTITION OF entries FOR VALUES WITH (MODULUS 8, REMAINDER %s)', part, part);
  END LOOP;
END $$;

-- Lists of wallets go by the bytes of their ids, whatever the database's locale: an order that no update of the system changes, and one in
-- which everything with the same beginning lies together.
CREATE INDEX wallets_by_id ON wallets (tenant, id COLLATE "C");
CREATE INDEX wallets_by_due ON wallets (due) WHERE due > 0;
-- Refunds alone, so that other entries don't pay for them.
CREATE INDEX entries_by_refund ON entries (wallet, of_seq) WHERE of_seq IS NOT NULL;
CREATE INDEX entries_by_refunded_hold ON entries (wallet, hold) WHERE of_seq IS NOT NULL;

-- Open holds at some seq, so that loading a wallet behind one very old hold does not read everything since.
CREATE TABLE checkpoints (
  wallet uuid NOT NULL PRIMARY KEY,
  seq bigint NOT NULL,
  holds jsonb NOT NULL,
  -- How many those are.
  open integer NOT NULL
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'Entries of the journal are never changed or deleted';
END $$;

CREATE TRIGGER entries_are_final BEFORE UPDATE OR DELETE ON entries FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entries_stay BEFORE TRUNCATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Parts inherit the trigger of rows, but not that of statements.
DO $$
BEGIN
  FOR part IN 0..7 LOOP
    EXECUTE format('CREATE TRIGGER entries_stay BEFORE TRUNCATE ON entries_%s FOR EACH STATEMENT
                    EXECUTE FUNCTION refuse_change()', part);
  END LOOP;
END $$;

-- Appends runs of entries, each of which must continue its wallet's row to the letter: at its beginning, or behind any of its entries.
-- (Processes that use one wallet send each other's entries along, so the one that comes second finds the row somewhere inside of its
-- run. Refused as a whole and sent again, two processes on one hot wallet cost ten times as much.)
--
--     refused   the runs that don't; why is a question for a later statement, because in this one a lost race would still show old values
--     present   the runs whose last entry the journal has: then it has all of them, because each names the one before it
--     begun     {run, seq} of those that the row was found inside of: up to that seq the journal had them
--
-- The rows are moved first, by compare, and only what was moved is inserted: half the cost of lock, join, insert. A key that was
-- seen before fails the insert: then everything is undone, the runs with such keys are left out, and the rest is done again.
--
-- The deadline asks the clock anew for every row, and once more when the row changed while this waited for its lock: who took the
-- wallet over in between, found the key missing and said no, must not be proved wrong by an entry that comes after its time.
--
-- The columns come as few arrays of rows, in binary (src/journal/append-values.ts):
--
--     run_number    1 epoch  2 seq before  3 available before  4 reserved before  5 last seq  6 at  7 available  8 reserved
--                   9 due  10 since  11 deadline (0: none)  12 credit limit (null: as it was)  13 the number of its first entry
--     run_hash      1 head before  2 head
--     run_status    null: as it was
--     entry_number  1 run  2 seq  3 at  4 amount  5 available±  6 reserved±  7 available  8 reserved  9 hold amount  10 captured
--                   11 left  12 expires at  13 refunded of the hold  14 of seq  15 refunded of that
--     entry_text    1 kind  2 key  3 hold  4 counter  5 params  6 metadata
--
-- An element of an array that plpgsql holds is found in no time, so rows are numbers that index into them. An `unnest` of all columns
-- copies each of them through a buffer of its own. Runs come from an `unnest` all the same: for arrays the planner expects ten rows
-- and looks wallets up one by one, for `generate_series` a thousand.
--
-- CPU an entry in Postgres at 1 / 20 / 100 / 1,000 entries a statement over 1,000 wallets: 342 / 35 / 20 / 11 µs; as 38 arrays of text
-- with `unnest`, and eight parts of wallets, 419 / 48 / 27 / 16 µs, in turn with it on a busy machine (lower quartile of 8 rounds).
-- `npm run bench -- append` tells what it is now. About a third of it goes into the two indexes of the journal. Without the savepoint, the
-- search path, the timeline or the indexes of refunds it is 5 to 8 % less at most, which is within the noise: all of them stay.
--
-- skip_locked: refuses the runs of wallets that somebody else has locked, instead of waiting for them.
--
-- At its end it notes what it did where somebody asks for events (0007_events.sql). The wallets are locked before
-- the settings are read, as a write does: so who locks them against writes (`start_feed`, `quiesce`) waits for all who may have read that nobody
-- asks, or that nothing is stopped.
CREATE FUNCTION append(
  run_wallet uuid[], run_number bigint[], run_hash bytea[], run_status text[],
  entry_number bigint[], entry_hash bytea[], entry_text text[], skip_locked boolean,
  OUT refused integer[], OUT present integer[], OUT begun bigint[]
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  runs integer := cardinality(run_wallet);
  floor_epoch bigint;
  stopped boolean;
  feeding boolean;
  left_out integer[];
  moved integer[];
  moved_after bigint[];
  -- By run: the seq behind which its entries were appended, null for none. Null itself when every run was appended as a whole.
  after_of bigint[];
  whole boolean;
  seen integer[];
BEGIN
  LOCK TABLE wallets IN ROW EXCLUSIVE MODE;
  SELECT greatest(s.epoch_floor, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint * 1000000000000),
         s.stopped_at IS NOT NULL, s.feed_until > clock_ms()
  INTO floor_epoch, stopped, feeding FROM settings s;
  IF stopped THEN
    PERFORM timeline_epoch();
  END IF;
  IF skip_locked THEN
    WITH free AS (SELECT ref FROM wallets WHERE ref = ANY (run_wallet) ORDER BY ref FOR NO KEY UPDATE SKIP LOCKED)
    SELECT array_agg(r.run) INTO left_out
    FROM unnest(run_wallet) WITH ORDINALITY AS r(wallet, run) WHERE r.wallet NOT IN (SELECT ref FROM free);
  END IF;
  LOOP
    BEGIN
      WITH done AS (
        UPDATE wallets w
        SET seq = run_number[r.run][5], head = run_hash[r.run][2], at = run_number[r.run][6],
            available = run_number[r.run][7], reserved = run_number[r.run][8],
            credit_limit = coalesce(run_number[r.run][12], w.credit_limit),
            status = coalesce(run_status[r.run]::wallet_status, w.status),
            due = run_number[r.run][9], since = run_number[r.run][10], appended_after = w.seq
        FROM (SELECT o.wallet, o.run::integer AS run FROM unnest(run_wallet) WITH ORDINALITY AS o(wallet, run)) AS r
        WHERE w.ref = r.wallet AND w.epoch = run_number[r.run][1] AND w.epoch > floor_epoch
          AND CASE
            WHEN w.seq = run_number[r.run][2] THEN
              w.head = run_hash[r.run][1] AND w.available = run_number[r.run][3] AND w.reserved = run_number[r.run][4]
            WHEN w.seq > run_number[r.run][2] AND w.seq < run_number[r.run][5] THEN
              w.head = entry_hash[run_number[r.run][13] - 1 + w.seq - run_number[r.run][2]]
              AND w.available = entry_number[run_number[r.run][13] - 1 + w.seq - run_number[r.run][2]][7]
              AND w.reserved = entry_number[run_number[r.run][13] - 1 + w.seq - run_number[r.run][2]][8]
            ELSE false
          END
          AND (run_number[r.run][11] = 0 OR clock_ms() <= run_number[r.run][11])
          AND (left_out IS NULL OR r.run <> ALL (left_out))
        RETURNING r.run, w.appended_after
      )
      SELECT coalesce(array_agg(run), '{}'), array_agg(appended_after), coalesce(bool_and(appended_after = run_number[run][2]), true)
      INTO moved, moved_after, whole FROM done;

      after_of := NULL;
      IF NOT whole OR cardinality(moved) < runs THEN
        after_of := array_fill(NULL::bigint, ARRAY[runs]);
        FOR n IN 1 .. cardinality(moved) LOOP
          after_of[moved[n]] := moved_after[n];
        END LOOP;
      END IF;
      INSERT INTO entries (
        wallet, epoch, seq, at, amount, available_delta, reserved_delta, available, reserved,
        hold_amount, hold_captured, hold_left, hold_expires_at, hold_refunded, of_seq, of_refunded,
        hash, kind, key, hold, counter, params, metadata
      )
      SELECT run_wallet[entry_number[e][1]], run_number[entry_number[e][1]][1], entry_number[e][2], entry_number[e][3],
             entry_number[e][4], entry_number[e][5], entry_number[e][6], entry_number[e][7], entry_number[e][8],
             entry_number[e][9], entry_number[e][10], entry_number[e][11], entry_number[e][12], entry_number[e][13],
             entry_number[e][14], entry_number[e][15],
             entry_hash[e], entry_text[e][1]::entry_kind, entry_text[e][2], entry_text[e][3], entry_text[e][4], entry_text[e][5],
             entry_text[e][6]
      FROM generate_series(1, cardinality(entry_hash)) AS e
      WHERE after_of IS NULL OR entry_number[e][2] > after_of[entry_number[e][1]];
      EXIT;
    EXCEPTION WHEN unique_violation THEN
      SELECT array_agg(DISTINCT e.run) INTO seen
      FROM (
        SELECT entry_number[o.n][1]::integer AS run, entry_text[o.n][2] AS key, count(*) AS times
        FROM unnest(entry_hash) WITH ORDINALITY AS o(hash, n)
        WHERE after_of IS NULL OR entry_number[o.n][2] > after_of[entry_number[o.n][1]]
        GROUP BY 1, 2
      ) AS e
      WHERE e.times > 1 OR EXISTS (SELECT FROM entries x WHERE x.wallet = run_wallet[e.run] AND x.key = e.key);
      IF seen IS NULL THEN
        RAISE;
      END IF;
      left_out := left_out || seen;
    END;
  END LOOP;
  IF feeding AND cardinality(moved) > 0 THEN
    INSERT INTO feed_inbox (wallets, firsts, lasts)
    SELECT array_agg(run_wallet[m.run]), array_agg(m.after + 1), array_agg(run_number[m.run][5])
    FROM unnest(moved, moved_after) AS m(run, after);
  END IF;
  IF cardinality(moved) < runs THEN
    SELECT array_agg(r.run) FILTER (WHERE NOT r.present), array_agg(r.run) FILTER (WHERE r.present) INTO refused, present
    FROM (
      SELECT run, coalesce((
        SELECT e.hash = run_hash[run][2] FROM entries e WHERE e.wallet = run_wallet[run] AND e.seq >= run_number[run][5] ORDER BY e.seq LIMIT 1
      ), false) AS present
      FROM generate_subscripts(run_wallet, 1) AS run WHERE after_of[run] IS NULL
    ) AS r;
    -- A yes to what others have appended. What was moved is waited for in any case.
    IF present IS NOT NULL AND cardinality(moved) = 0 THEN
      PERFORM await_replicas();
    END IF;
  END IF;
  IF NOT whole THEN
    SELECT array_agg(ARRAY[run, after_of[run]]) INTO begun
    FROM generate_subscripts(run_wallet, 1) AS run WHERE after_of[run] > run_number[run][2];
  END IF;
END $$;

-- Does what a refusal rests on stand? One read for many refusals, all decided before it was sent.
--
-- An append of the Postgres path may be under way, inside its deadline when it was checked, and commit after this has looked: then a
-- retry would be told no and the first attempt be done. So the rows that this path owns are written first, unchanged: that waits for
-- who has them, and makes who comes after look at the clock again. Each statement in here sees what was committed before it.
--
-- Where there are synchronous replicas this is a commit that waits for them, one for all of the refusals: they may rest on an entry that no
-- replica has.
--
-- skip_locked: leaves the rows that somebody else has locked, instead of waiting for them. Of what was not written nothing can stand: `locked`.
CREATE FUNCTION confirm(
  refusal_wallet uuid[], refusal_epoch bigint[], refusal_seq bigint[], refusal_head bytea[], refusal_key text[], refusal_hold text[],
  skip_locked boolean
) RETURNS TABLE (
  n bigint, current boolean, held boolean, seen boolean, hold_made boolean, hold_expired boolean, epoch bigint, owner wallet_owner,
  locked boolean
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  floor_epoch bigint := timeline_epoch();
  free uuid[] := refusal_wallet;
  written uuid[];
BEGIN
  IF skip_locked THEN
    SELECT array_agg(f.ref) INTO free
    FROM (
      SELECT w.ref FROM wallets w WHERE w.ref = ANY (refusal_wallet) AND w.owner = 'postgres' ORDER BY w.ref FOR NO KEY UPDATE SKIP LOCKED
    ) AS f;
  END IF;
  WITH done AS (
    UPDATE wallets w SET owner = w.owner
    FROM (SELECT DISTINCT r.wallet FROM unnest(free) AS r(wallet) ORDER BY r.wallet) AS r
    WHERE w.ref = r.wallet AND w.owner = 'postgres'
    RETURNING w.ref
  )
  SELECT coalesce(array_agg(done.ref), '{}') INTO written FROM done;
  RETURN QUERY
  SELECT r.n,
         coalesce(w.epoch = r.epoch AND w.epoch > floor_epoch, false),
         coalesce((w.seq = r.seq AND w.head = r.head) OR (r.seq = 0 AND w.genesis = r.head)
                  OR (SELECT e.hash FROM entries e WHERE e.wallet = r.wallet AND e.seq >= r.seq ORDER BY e.seq LIMIT 1) = r.head, false),
         EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.key = r.key),
         EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.key = r.hold AND e.kind = 'hold' AND e.seq <= r.seq),
         EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.key = '~expire:' || r.hold AND e.seq <= r.seq),
         w.epoch, w.owner,
         -- An epoch that is over stays so, whoever has the row.
         coalesce(w.owner = 'postgres' AND w.epoch = r.epoch AND w.ref <> ALL (written), false)
  FROM unnest(refusal_wallet, refusal_epoch, refusal_seq, refusal_head, refusal_key, refusal_hold) WITH ORDINALITY
       AS r(wallet, epoch, seq, head, key, hold, n)
  LEFT JOIN wallets w ON w.ref = r.wallet
  ORDER BY r.n;
  PERFORM await_replicas();
END $$;

-- The open holds of a wallet as the journal has them: the checkpoint, if it is not older than every hold, and what came after it.
-- from_seq is the row's `since`: 0 when nothing is open, whatever a checkpoint says.
CREATE FUNCTION open_holds(of_wallet uuid, from_seq bigint)
RETURNS TABLE (hold text, amount bigint, captured bigint, left_over bigint, expires_at bigint, refunded bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  WITH start AS (
    SELECT c.seq, c.holds FROM checkpoints c WHERE c.wallet = of_wallet AND from_seq > 0 AND c.seq >= from_seq
  ), latest AS (
    SELECT DISTINCT ON (h.hold) h.*
    FROM (
      SELECT e.hold, e.seq, e.kind IN ('settle', 'release', 'expire') OR e.hold_expires_at IS NULL AS closed,
             e.hold_amount, e.hold_captured, e.hold_left, e.hold_expires_at, e.hold_refunded
      FROM entries e
      WHERE e.wallet = of_wallet AND from_seq > 0 AND e.hold IS NOT NULL
        AND e.seq >= from_seq AND e.seq > coalesce((SELECT seq FROM start), 0)
      UNION ALL
      SELECT s.hold, 0, false, s.amount, s.captured, s.left_over, s.expires_at, s.refunded
      FROM start, jsonb_to_recordset(start.holds)
           AS s(hold text, amount bigint, captured bigint, left_over bigint, expires_at bigint, refunded bigint)
    ) h
    ORDER BY h.hold, h.seq DESC
  )
  SELECT l.hold, l.hold_amount, l.hold_captured, l.hold_left, l.hold_expires_at, coalesce(l.hold_refunded, 0)
  FROM latest l WHERE NOT l.closed
$$;

-- The books: what every counter-account got, the other side of each entry. Derived, because a row that every operation updates
-- would be the one hot row of the whole product. Numeric: totals over a lifetime may pass 2^63.
CREATE VIEW books AS
  SELECT w.tenant, w.currency, e.counter AS account, -sum(e.available_delta::numeric + e.reserved_delta) AS balance
  FROM entries e JOIN wallets w ON w.ref = e.wallet
  GROUP BY w.tenant, w.currency, e.counter
  UNION ALL
  SELECT tenant, currency, 'wallets', sum(available::numeric + reserved) FROM wallets GROUP BY tenant, currency;
