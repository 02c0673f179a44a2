-- Why a wallet was not taken over. If that was because somebody had its row locked, and has let go by now, it is locked for whoever asks.
SELECT w.memory, free.ref IS NOT NULL AS free
FROM wallets w
LEFT JOIN (SELECT ref FROM wallets WHERE ref = $1 FOR NO KEY UPDATE SKIP LOCKED) AS free ON free.ref = w.ref
WHERE w.ref = $1
