-- Wallets as they would be loaded: row and open holds of one moment.
SELECT replace(w.ref::text, '-', '') AS ref, w.epoch, w.owner, w.memory, w.seq, encode(w.head, 'hex') AS head, w.at, w.available, w.reserved,
       w.credit_limit, w.status, w.due, w.since, clock_ms() AS clock,
       CASE WHEN w.since > 0 THEN (SELECT jsonb_agg(to_jsonb(h)) FROM open_holds(w.ref, w.since) h) END AS holds
FROM wallets w WHERE w.ref = ANY ($1::uuid[])
