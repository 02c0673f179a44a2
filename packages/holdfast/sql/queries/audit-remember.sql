-- Verified up to here. Never back, unless the journal was read from the beginning just now.
UPDATE audits a
SET seq = v.seq, head = v.head, epoch = v.epoch, at = v.at, available = v.available, reserved = v.reserved, credit_limit = v.credit_limit,
    status = v.status::wallet_status, due = v.due, holds = v.holds, full_at = CASE WHEN v.is_full THEN clock_ms() ELSE a.full_at END
FROM unnest($2::uuid[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[],
            $11::bigint[], $12::jsonb[], $13::boolean[])
     AS v(wallet, seq, head, epoch, at, available, reserved, credit_limit, status, due, holds, is_full)
WHERE a.shard = $1 AND a.wallet = v.wallet AND (a.seq <= v.seq OR v.is_full)
