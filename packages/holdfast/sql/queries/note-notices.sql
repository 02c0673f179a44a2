-- What is no entry, where somebody asks for events. $1 refs, $2 tenants, $3 what to say.
INSERT INTO feed_inbox (wallets, firsts, lasts, notice, tenant)
SELECT ARRAY[n.wallet], '{0}', '{0}', n.notice, n.tenant
FROM unnest($1::uuid[], $2::text[], $3::jsonb[]) AS n(wallet, tenant, notice)
WHERE EXISTS (SELECT FROM settings s WHERE s.feed_until > clock_ms())
