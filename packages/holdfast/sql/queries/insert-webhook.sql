-- From now on: behind all that has a position. No row: the tenant has as many as it may.
INSERT INTO webhooks (id, tenant, url, events, wallet_prefix, balance_low, created_at, position, mark)
SELECT $1, $2, $3, $4, $5, $6, clock_ms(), h.position, f.mark FROM feed_head h JOIN feed f ON f.position = h.position
WHERE (SELECT count(*) FROM webhooks w WHERE w.tenant = $2) < $7
RETURNING id, tenant, url, events, wallet_prefix, balance_low, created_at, failing_since, 0 AS waiting, 0 AS dead
