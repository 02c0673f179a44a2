-- Nothing was due after all: the bound moves on, if nothing else happened meanwhile.
UPDATE wallets SET due = $4 WHERE ref = $1 AND epoch = $2 AND seq = $3
