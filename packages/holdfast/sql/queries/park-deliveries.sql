-- What was told again because somebody died in the middle is there already. $10: dead from the start.
INSERT INTO webhook_deliveries (webhook, lane, event_id, event, body, created_at, tries, next_at, reason, dead_at)
SELECT $1, d.lane, d.event_id, d.event, d.body, d.created_at, d.tries, clock_ms() + d.pause_ms, d.reason,
       CASE WHEN $10::boolean THEN clock_ms() END
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::integer[], $8::bigint[], $9::text[]) WITH ORDINALITY
     AS d(lane, event_id, event, body, created_at, tries, pause_ms, reason, n)
WHERE EXISTS (SELECT FROM webhooks w WHERE w.id = $1)
ORDER BY d.n
ON CONFLICT (webhook, event_id) DO NOTHING
