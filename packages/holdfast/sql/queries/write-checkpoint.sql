-- Notes a wallet's open holds, unless that was done less than four entries a hold ago: then there is little more to read than what is
-- noted, and ten thousand holds noted every thousand entries would cost more than the entries.
WITH row AS (
  SELECT w.ref, w.seq, w.since FROM wallets w LEFT JOIN checkpoints c ON c.wallet = w.ref AND c.seq >= w.since
  WHERE w.ref = $1 AND w.since > 0 AND (c.seq IS NULL OR w.seq - c.seq >= 4 * c.open)
)
INSERT INTO checkpoints (wallet, seq, holds, open)
SELECT row.ref, row.seq, h.holds, h.open
FROM row, LATERAL (
  SELECT coalesce(jsonb_agg(to_jsonb(o)), '[]') AS holds, count(*) AS open FROM open_holds(row.ref, row.since) o
) AS h
ON CONFLICT (wallet) DO UPDATE SET seq = excluded.seq, holds = excluded.holds, open = excluded.open WHERE checkpoints.seq < excluded.seq
