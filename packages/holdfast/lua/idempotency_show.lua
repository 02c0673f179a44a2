-- Has Redis show what Postgres knows: keys that are completed. Whatever stood there is older.
--
-- KEYS  for each: the key
-- ARGV  1 number of them   then for each: what stands for its token   what stands for the request, or -   attempt   1 when it was taken over
--       when it was created, ms   when it was completed, ms   for how long to remember it, ms   the response
-- Returns for each 1
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include idempotency/record

return each(1, 8, function(k, a)
  write_record(KEYS[k + 1], {
    state = 'COMPLETED',
    token = ARGV[a + 1],
    request = ARGV[a + 2],
    attempt = tonumber(ARGV[a + 3]),
    took_over = tonumber(ARGV[a + 4]),
    lease_until = 0,
    created = tonumber(ARGV[a + 5]),
    updated = tonumber(ARGV[a + 6]),
    payload = ARGV[a + 8],
  }, ARGV[a + 7])
  return 1
end)
