-- For how long the shard has waited that has waited longest, ms.
SELECT coalesce(clock_ms() - min(audited_at), 0) AS waited FROM audit_shards
