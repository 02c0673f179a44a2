-- Wallets and their journal.
--
--     wallets   one row a wallet: the state after its last entry, and what an entry must continue: epoch, seq, head
--     entries   what happened, gapless and linked by hash; never changed, never deleted
--
-- Both are cut into eight by the hash of the wallet, so that they grow evenly and parts can be moved to disks of their own later.
-- More parts cost planning time in every statement and gain nothing at this size.

CREATE TYPE wallet_status AS ENUM ('active', 'frozen', 'closed');
CREATE TYPE entry_kind AS ENUM (
  'credit', 'debit', 'hold', 'capture', 'extend', 'settle', 'release', 'expire', 'refund', 'freeze', 'unfreeze', 'limit', 'close'
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
  -- timeline of this Postgres × 10^9 + how often it was raised: see timeline_epoch().
  epoch bigint NOT NULL,
  -- Who decides under this epoch.
  owner text NOT NULL CHECK (owner IN ('redis', 'postgres')),
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
  since bigint NOT NULL
) PARTITION BY HASH (ref);

-- 283 bytes a row and 157 in its two indexes, with keys and hold ids of 36 characters: what does not apply is null and takes no room.
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
  key text NOT NULL,
  hold text,
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
    -- Room in every page, so that a new state finds place beside the old one and no index is touched.
    EXECUTE format('CREATE TABLE wallets_%s PARTITION OF wallets FOR VALUES WITH (MODULUS 8, REMAINDER %s)
                    WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02)', part, part);
    EXECUTE format('CREATE TABLE entries_%s PARTITION OF entries FOR VALUES WITH (MODULUS 8, REMAINDER %s)', part, part);
  END LOOP;
END $$;

CREATE INDEX wallets_by_id ON wallets (tenant, id);
CREATE INDEX wallets_by_due ON wallets (due) WHERE due > 0;
-- Refunds alone, so that other entries don't pay for them.
CREATE INDEX entries_by_refund ON entries (wallet, of_seq) WHERE of_seq IS NOT NULL;
CREATE INDEX entries_by_refunded_hold ON entries (wallet, hold) WHERE of_seq IS NOT NULL;

-- Open holds at some seq, so that loading a wallet behind one very old hold does not read everything since.
CREATE TABLE checkpoints (
  wallet uuid NOT NULL PRIMARY KEY,
  seq bigint NOT NULL,
  holds jsonb NOT NULL
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

-- The least epoch of this Postgres's timeline. A promoted replica has another timeline, so every epoch of the old one is past,
-- also a raise that the replica missed. (Later epochs than this timeline's are those of a dump that was restored into a younger
-- server: it goes on from there.) Fails on a server in recovery: nothing is decided on a replica.
CREATE FUNCTION timeline_epoch() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint * 1000000000
$$;

CREATE FUNCTION clock_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

-- Appends runs of entries, each of which must continue its wallet's row to the letter. Returns the numbers of the runs that were
-- refused; why is a question for a later statement, because in this one a lost race would still show old values.
--
-- The rows are moved first, by compare, and only what was moved is inserted: half the cost of lock, join, insert. A key that was
-- seen before fails the insert: then everything is undone, the runs with such keys are left out, and the rest is done again.
--
-- The deadline asks the clock anew for every row, and once more when the row changed while this waited for its lock: who took the
-- wallet over in between, found the key missing and said no, must not be proved wrong by an entry that comes after its time.
--
-- CPU an entry, 1,000 a call on 100,000 wallets and 1.7 million entries: 25 µs at one entry a wallet, 10 µs at twenty. Every join is a
-- nested loop over index lookups in one part (see plan_cache_mode).
--
-- skip_locked: refuses the runs of wallets that somebody else has locked, instead of waiting for them.
CREATE FUNCTION append(
  run_wallet uuid[], run_epoch bigint[], run_first bigint[], run_prev bytea[], run_available bigint[], run_reserved bigint[],
  run_last bigint[], run_head bytea[], run_at bigint[], run_available_after bigint[], run_reserved_after bigint[],
  run_limit bigint[], run_status wallet_status[], run_due bigint[], run_since bigint[], run_deadline bigint[],
  entry_run integer[], entry_seq bigint[], entry_at bigint[], entry_amount bigint[], entry_available_delta bigint[],
  entry_reserved_delta bigint[], entry_available bigint[], entry_reserved bigint[], entry_hold_amount bigint[],
  entry_hold_captured bigint[], entry_hold_left bigint[], entry_hold_expires_at bigint[], entry_hold_refunded bigint[],
  entry_of_seq bigint[], entry_of_refunded bigint[], entry_kind entry_kind[], entry_hash bytea[], entry_key text[],
  entry_hold text[], entry_counter text[], entry_params text[], entry_metadata text[], skip_locked boolean
) RETURNS integer[] LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  floor_epoch bigint := timeline_epoch();
  left_out integer[] := '{}';
  moved integer[];
  complete boolean;
  seen integer[];
BEGIN
  IF skip_locked THEN
    WITH free AS (SELECT ref FROM wallets WHERE ref = ANY (run_wallet) ORDER BY ref FOR NO KEY UPDATE SKIP LOCKED)
    SELECT coalesce(array_agg(r.run), '{}') INTO left_out
    FROM unnest(run_wallet) WITH ORDINALITY AS r(wallet, run) WHERE r.wallet NOT IN (SELECT ref FROM free);
  END IF;
  LOOP
    BEGIN
      WITH done AS (
        UPDATE wallets w
        SET seq = r.last, head = r.head, at = r.at, available = r.available_after, reserved = r.reserved_after,
            credit_limit = coalesce(r.credit_limit, w.credit_limit), status = coalesce(r.status, w.status),
            due = r.due, since = r.since
        FROM unnest(run_wallet, run_epoch, run_first, run_prev, run_available, run_reserved, run_last, run_head, run_at,
                    run_available_after, run_reserved_after, run_limit, run_status, run_due, run_since, run_deadline)
             WITH ORDINALITY
             AS r(wallet, epoch, first, prev, available, reserved, last, head, at, available_after, reserved_after,
                  credit_limit, status, due, since, deadline, run)
        WHERE w.ref = r.wallet AND w.epoch = r.epoch AND w.seq = r.first - 1 AND w.head = r.prev
          AND w.available = r.available AND w.reserved = r.reserved
          AND r.epoch > floor_epoch
          AND (r.deadline = 0 OR clock_ms() <= r.deadline)
          AND (left_out = '{}' OR r.run <> ALL (left_out))
        RETURNING r.run::integer AS run
      )
      SELECT coalesce(array_agg(run), '{}') INTO moved FROM done;

      complete := cardinality(moved) = cardinality(run_wallet);
      INSERT INTO entries (
        wallet, epoch, seq, at, amount, available_delta, reserved_delta, available, reserved, hold_amount, hold_captured, hold_left,
        hold_expires_at, hold_refunded, of_seq, of_refunded, kind, hash, key, hold, counter, params, metadata
      )
      SELECT run_wallet[e.run], run_epoch[e.run], e.seq, e.at, e.amount, e.available_delta, e.reserved_delta, e.available, e.reserved,
             e.hold_amount, e.hold_captured, e.hold_left, e.hold_expires_at, e.hold_refunded, e.of_seq, e.of_refunded, e.kind,
             e.hash, e.key, e.hold, e.counter, e.params, e.metadata
      FROM unnest(entry_run, entry_seq, entry_at, entry_amount, entry_available_delta, entry_reserved_delta, entry_available,
                  entry_reserved, entry_hold_amount, entry_hold_captured, entry_hold_left, entry_hold_expires_at,
                  entry_hold_refunded, entry_of_seq, entry_of_refunded, entry_kind, entry_hash, entry_key, entry_hold,
                  entry_counter, entry_params, entry_metadata)
           AS e(run, seq, at, amount, available_delta, reserved_delta, available, reserved, hold_amount, hold_captured, hold_left,
                hold_expires_at, hold_refunded, of_seq, of_refunded, kind, hash, key, hold, counter, params, metadata)
      WHERE complete OR e.run = ANY (moved);
      EXIT;
    EXCEPTION WHEN unique_violation THEN
      SELECT array_agg(DISTINCT e.run) INTO seen
      FROM (SELECT run, key, count(*) AS times FROM unnest(entry_run, entry_key) AS o(run, key) GROUP BY run, key) AS e
      WHERE e.run = ANY (moved)
        AND (e.times > 1 OR EXISTS (SELECT FROM entries x WHERE x.wallet = run_wallet[e.run] AND x.key = e.key));
      IF seen IS NULL THEN
        RAISE;
      END IF;
      left_out := left_out || seen;
    END;
  END LOOP;
  IF complete THEN
    RETURN '{}';
  END IF;
  RETURN ARRAY(SELECT run::integer FROM generate_subscripts(run_wallet, 1) AS run WHERE run <> ALL (moved));
END $$;

-- Does what a refusal rests on stand? One read for many refusals, all decided before it was sent.
--
-- An append of the Postgres path may be under way, inside its deadline when it was checked, and commit after this has looked: then a
-- retry would be told no and the first attempt be done. So the rows that this path owns are written first, unchanged: that waits for
-- who has them, and makes who comes after look at the clock again. Each statement in here sees what was committed before it.
CREATE FUNCTION confirm(
  refusal_wallet uuid[], refusal_epoch bigint[], refusal_seq bigint[], refusal_head bytea[], refusal_key text[], refusal_hold text[]
) RETURNS TABLE (
  n bigint, current boolean, held boolean, seen boolean, hold_made boolean, hold_expired boolean, epoch bigint
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  floor_epoch bigint := timeline_epoch();
BEGIN
  UPDATE wallets w SET owner = w.owner
  FROM (SELECT DISTINCT r.wallet FROM unnest(refusal_wallet) AS r(wallet) ORDER BY r.wallet) AS r
  WHERE w.ref = r.wallet AND w.owner = 'postgres';
  RETURN QUERY
  SELECT r.n,
         coalesce(w.epoch = r.epoch AND w.epoch > floor_epoch, false),
         coalesce((w.seq = r.seq AND w.head = r.head) OR (r.seq = 0 AND w.genesis = r.head)
                  OR EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.seq = r.seq AND e.hash = r.head), false),
         EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.key = r.key),
         EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.key = r.hold AND e.kind = 'hold'),
         EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.key = '~expire:' || r.hold),
         w.epoch
  FROM unnest(refusal_wallet, refusal_epoch, refusal_seq, refusal_head, refusal_key, refusal_hold) WITH ORDINALITY
       AS r(wallet, epoch, seq, head, key, hold, n)
  LEFT JOIN wallets w ON w.ref = r.wallet
  ORDER BY r.n;
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

-- Into how many shards wallets are hashed: fixed by the first who connects, because another number would look in other places.
ALTER TABLE settings ADD COLUMN shards integer CHECK (shards BETWEEN 1 AND 16384);
