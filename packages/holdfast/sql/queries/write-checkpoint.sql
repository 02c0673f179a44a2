WITH row AS (SELECT ref, seq, since FROM wallets WHERE ref = $1 AND since > 0)
INSERT INTO checkpoints (wallet, seq, holds)
SELECT row.ref, row.seq, coalesce((SELECT jsonb_agg(to_jsonb(h)) FROM open_holds(row.ref, row.since) h), '[]') FROM row
ON CONFLICT (wallet) DO UPDATE SET seq = excluded.seq, holds = excluded.holds WHERE checkpoints.seq < excluded.seq
