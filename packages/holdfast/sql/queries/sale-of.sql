-- Which sale a bucket is of.
SELECT id FROM wallets WHERE ref = $1 AND tenant = $2
