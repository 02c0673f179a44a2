-- A page of a shard's wallets, those that are to be in Redis: with open holds, used since a time, or all.
WITH page AS MATERIALIZED (
  SELECT wallet FROM audits WHERE shard = $1 AND wallet > $2 ORDER BY wallet LIMIT $3
)
SELECT (SELECT count(*)::integer FROM page) AS wallets,
       replace((SELECT p.wallet FROM page p ORDER BY p.wallet DESC LIMIT 1)::text, '-', '') AS last,
       (SELECT jsonb_agg(jsonb_build_array(replace(w.ref::text, '-', ''), w.tenant, w.epoch))
        FROM page p JOIN wallets w ON w.ref = p.wallet WHERE $5 OR w.since > 0 OR w.at >= $4) AS wanted
