-- Each shard once; the first audits are spread over the time between two.
INSERT INTO audit_shards (shard, audited_at)
SELECT shard, clock_ms() - floor(random() * $2::bigint)::bigint FROM generate_series(0, $1::integer - 1) AS shard
ON CONFLICT DO NOTHING
