-- Which of these wait, of a webhook that is still this process's: one row with no lane where none does. No row: it is another's by now, or was deleted.
SELECT DISTINCT d.lane FROM webhooks w
LEFT JOIN webhook_deliveries d ON d.webhook = w.id AND d.dead_at IS NULL AND d.lane = ANY ($3::text[])
WHERE w.id = $1 AND w.holder = $2
