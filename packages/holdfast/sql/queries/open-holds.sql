-- Open holds of wallets, each by the bound that its row has.
SELECT r.n, h.hold, h.amount, h.captured, h.left_over, h.expires_at, h.refunded
FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS r(ref, since, n), open_holds(r.ref, r.since) AS h
