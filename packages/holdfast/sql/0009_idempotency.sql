-- Keys of requests that must have one effect: the truth under what Redis shows of them.
--
--     claim -> PROCESSING -> COMPLETED             kept until it expires, and answered with its response
--                 ^   |
--                 |   +----> FAILED_RETRYABLE      the next claim gets it at once
--                 +- the lease has run out: the next claim gets it, with another token
--
-- Two owners can't both complete: an attempt is completed by an update of its row that asks for its token, in the very transaction that has
-- the effect. Who takes over changes the token under the same row's lock, and passes by a row that is locked: its owner is committing.

CREATE TABLE idempotency_keys (
  owner text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  -- What the caller's key hashes to, as in Redis: the key itself is nowhere.
  key text COLLATE "C" NOT NULL CHECK (length(key) = 32),
  state text NOT NULL CHECK (state IN ('PROCESSING', 'COMPLETED', 'FAILED_RETRYABLE')),
  -- What the owner's token and the request hash to. Null: no request was given.
  token text NOT NULL CHECK (length(token) = 32),
  request text CHECK (length(request) = 32),
  attempt integer NOT NULL,
  took_over boolean NOT NULL,
  -- 0 unless it is being processed.
  lease_until bigint NOT NULL,
  -- JSON as it was, to the letter: of what is completed. Empty: none.
  response text NOT NULL,
  reason text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  PRIMARY KEY (owner, tenant, operation, key)
);

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

-- What a claim with this token and this request finds: conflict, completed, processing, or free to be taken.
CREATE FUNCTION idempotency_standing(k idempotency_keys, by_token text, with_request text, at_ms bigint) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $$
  SELECT CASE
    WHEN k.expires_at <= at_ms THEN 'free'
    -- Null where one of the two is not known: then it is none.
    WHEN k.request <> with_request THEN 'conflict'
    WHEN k.state = 'COMPLETED' THEN 'completed'
    WHEN k.state = 'PROCESSING' AND k.token <> by_token AND k.lease_until > at_ms THEN 'processing'
    ELSE 'free'
  END
$$;

-- `standing` is claimed, processing, completed or conflict; the rest is of the row as it is then.
CREATE FUNCTION claim_idempotency_key(
  of_owner text, of_tenant text, of_operation text, of_key text, by_token text, with_request text, lease_ms bigint, keep_ms bigint,
  OUT standing text, OUT attempt integer, OUT took_over boolean, OUT left_ms bigint, OUT token text, OUT request text, OUT response text,
  OUT created_at bigint, OUT updated_at bigint, OUT keep_left_ms bigint
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  now_ms bigint := clock_ms();
  k idempotency_keys;
BEGIN
  LOOP
    -- Without a lock first: most find that there is nothing to take, and must not wait for an owner that has the row locked to commit.
    SELECT i.* INTO k FROM idempotency_keys i
    WHERE i.owner = of_owner AND i.tenant = of_tenant AND i.operation = of_operation AND i.key = of_key;
    IF NOT FOUND THEN
      INSERT INTO idempotency_keys (owner, tenant, operation, key, state, token, request, attempt, took_over, lease_until, response, reason,
                                    created_at, updated_at, expires_at)
      VALUES (of_owner, of_tenant, of_operation, of_key, 'PROCESSING', by_token, with_request, 1, false, now_ms + lease_ms, '', '',
              now_ms, now_ms, now_ms + keep_ms)
      ON CONFLICT DO NOTHING RETURNING * INTO k;
      -- Somebody else was first, and is committed by now: the next look sees it.
      CONTINUE WHEN NOT FOUND;
      standing := 'claimed';
      EXIT;
    END IF;
    standing := idempotency_standing(k, by_token, with_request, now_ms);
    EXIT WHEN standing <> 'free';
    SELECT i.* INTO k FROM idempotency_keys i
    WHERE i.owner = of_owner AND i.tenant = of_tenant AND i.operation = of_operation AND i.key = of_key FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      -- Its owner is committing, or somebody else takes it right now: a moment later it is known which.
      standing := 'processing';
      left_ms := 100;
      RETURN;
    END IF;
    standing := idempotency_standing(k, by_token, with_request, now_ms);
    EXIT WHEN standing <> 'free';
    standing := 'claimed';
    IF k.expires_at <= now_ms THEN
      k.attempt := 1;
      k.took_over := false;
      k.request := with_request;
      k.created_at := now_ms;
    ELSIF k.state <> 'PROCESSING' OR k.token <> by_token THEN
      k.attempt := k.attempt + 1;
      k.took_over := k.state = 'PROCESSING';
    END IF;
    UPDATE idempotency_keys i
    SET state = 'PROCESSING', token = by_token, request = coalesce(k.request, with_request), attempt = k.attempt, took_over = k.took_over,
        lease_until = now_ms + lease_ms, response = '', reason = '', created_at = k.created_at, updated_at = now_ms,
        expires_at = now_ms + keep_ms
    WHERE i.owner = of_owner AND i.tenant = of_tenant AND i.operation = of_operation AND i.key = of_key;
    EXIT;
  END LOOP;
  IF standing IN ('completed', 'conflict') THEN
    PERFORM await_replicas();
  END IF;
  attempt := k.attempt;
  took_over := k.took_over;
  left_ms := greatest(1, k.lease_until - now_ms);
  token := k.token;
  request := k.request;
  response := k.response;
  created_at := k.created_at;
  updated_at := k.updated_at;
  keep_left_ms := greatest(1, k.expires_at - now_ms);
END $$;

-- The row as it is completed; none when it is somebody else's by now. Said again by the same owner, it is what it was.
CREATE FUNCTION complete_idempotency_key(
  of_owner text, of_tenant text, of_operation text, of_key text, by_token text, with_response text, keep_ms bigint
) RETURNS SETOF idempotency_keys LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  now_ms bigint := clock_ms();
BEGIN
  RETURN QUERY UPDATE idempotency_keys i
  SET state = 'COMPLETED', response = with_response, lease_until = 0, updated_at = now_ms, expires_at = now_ms + keep_ms
  WHERE i.owner = of_owner AND i.tenant = of_tenant AND i.operation = of_operation AND i.key = of_key AND i.token = by_token
    AND i.state = 'PROCESSING'
  RETURNING i.*;
  IF FOUND THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT i.* FROM idempotency_keys i
  WHERE i.owner = of_owner AND i.tenant = of_tenant AND i.operation = of_operation AND i.key = of_key AND i.token = by_token
    AND i.state = 'COMPLETED';
  PERFORM await_replicas();
END $$;

-- The same within a transaction of the caller's, which has the effect. One that may not have it can't commit any more, whatever its caller
-- does about the error. Completed by the same owner before counts as that too: the effect is there already.
CREATE FUNCTION complete_idempotency_key_within(
  of_owner text, of_tenant text, of_operation text, of_key text, by_token text, with_response text, keep_ms bigint
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  now_ms bigint := clock_ms();
BEGIN
  UPDATE idempotency_keys i
  SET state = 'COMPLETED', response = with_response, lease_until = 0, updated_at = now_ms, expires_at = now_ms + keep_ms
  WHERE i.owner = of_owner AND i.tenant = of_tenant AND i.operation = of_operation AND i.key = of_key AND i.token = by_token
    AND i.state = 'PROCESSING';
  IF NOT FOUND THEN
    RAISE EXCEPTION 'The key is not this owner''s any more' USING ERRCODE = 'HF002';
  END IF;
END $$;
