-- $3: it was audited to the end.
UPDATE audit_shards
SET holder = NULL, lease_until = 0, audited_at = CASE WHEN $3 THEN clock_ms() ELSE audited_at END
WHERE shard = $1 AND holder = $2
