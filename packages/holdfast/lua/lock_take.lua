-- Takes locks, each for a time, if nobody has them. A copy of the call that arrives after a lock was given back takes it for nobody: then
-- others wait until its time is over.
--
-- KEYS  for each: the lock
-- ARGV  1 number of them   then for each: who takes it, unique to this taking   for how long, ms
-- Returns for each 0 when it is taken, otherwise for how long somebody else still has it, ms: 1 at least
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include lock/take

return each(1, 2, function(k, a)
  return take(KEYS[k + 1], ARGV[a + 1], ARGV[a + 2])
end)
