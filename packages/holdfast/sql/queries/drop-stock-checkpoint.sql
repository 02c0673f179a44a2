-- It can't be read, and the journal can.
DELETE FROM stock_checkpoints WHERE wallet = $1
