-- Keeps those that are this process's, and takes those that are nobody's.
UPDATE webhooks SET holder = $1, lease_until = clock_ms() + $2::bigint
WHERE id IN (SELECT w.id FROM webhooks w WHERE w.holder = $1 OR w.lease_until <= clock_ms() ORDER BY w.id LIMIT $3 FOR UPDATE SKIP LOCKED)
RETURNING id, tenant, url, events, wallet_prefix, balance_low, position, mark, tries, failing_since, greatest(0, next_at - clock_ms()) AS pause_ms
