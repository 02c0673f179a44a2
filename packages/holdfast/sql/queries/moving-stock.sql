-- What is on its way between buckets of a sale, and whether one has taken something after a seq. In one statement: a move is noted until it
-- was taken, so that it is seen in one of the two.
SELECT EXISTS (
         SELECT FROM unnest($1::uuid[], $2::bigint[]) AS b(ref, seq) CROSS JOIN LATERAL (
           SELECT e.seq FROM entries e WHERE e.wallet = b.ref AND e.seq > b.seq AND e.params LIKE 'take %' ORDER BY e.seq LIMIT 1
         ) AS taken
       ) AS arrived,
       ARRAY(
         SELECT jsonb_build_object(
           'source', replace(t.source::text, '-', ''), 'key', t.key, 'target', replace(t.target::text, '-', ''), 'amount', t.amount, 'fee', t.fee,
           'tenant', t.tenant, 'counter', t.counter, 'metadata', t.metadata, 'attempt', t.attempt)
         FROM transfers t WHERE t.source = ANY ($1::uuid[])
       ) AS moves
