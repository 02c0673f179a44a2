-- Only ever a later one.
INSERT INTO stock_checkpoints (wallet, seq, stock) VALUES ($1, $2, $3)
ON CONFLICT (wallet) DO UPDATE SET seq = excluded.seq, stock = excluded.stock WHERE stock_checkpoints.seq < excluded.seq
