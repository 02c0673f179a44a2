-- Takes a shard that nobody audits: this one, or (null) the one that has waited longest, if its time has come. The time is a little
-- different each time, so that shards don't gather.
UPDATE audit_shards
SET holder = $2, lease_until = clock_ms() + $3::bigint
WHERE shard = (
  SELECT s.shard FROM audit_shards s
  WHERE (s.lease_until <= clock_ms() OR s.holder = $2)
    AND CASE WHEN $1::integer IS NULL THEN s.audited_at + $4::bigint * (0.9 + 0.2 * random()) <= clock_ms() ELSE s.shard = $1 END
  ORDER BY s.audited_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING shard
