-- $1 null: those of all tenants; $2: only this one.
SELECT w.id, w.tenant, w.url, w.events, w.wallet_prefix, w.balance_low, w.created_at, w.failing_since,
       (SELECT count(*)::integer FROM webhook_deliveries d WHERE d.webhook = w.id AND d.dead_at IS NULL) AS waiting,
       (SELECT count(*)::integer FROM webhook_deliveries d WHERE d.webhook = w.id AND d.dead_at IS NOT NULL) AS dead
FROM webhooks w WHERE ($1::text IS NULL OR w.tenant = $1) AND ($2::text IS NULL OR w.id = $2)
ORDER BY w.tenant, w.created_at, w.id
