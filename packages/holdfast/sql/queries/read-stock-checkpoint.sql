-- The last one at or before a seq; none: the stock is read from the beginning.
SELECT seq, stock FROM stock_checkpoints WHERE wallet = $1 AND seq <= $2
