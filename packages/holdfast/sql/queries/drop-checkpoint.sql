-- A checkpoint is only a shortcut: without it the journal itself is read.
DELETE FROM checkpoints WHERE wallet = $1
