-- Says how attempts stand, and counts none.
--
-- KEYS  for each: the log of attempts   the cool-down
-- ARGV  1 number of them   then for each what otp_attempt takes
-- Returns for each what otp_attempt does, as if it were one: 1 or 0   attempts that count   ms until the next one, or 0: at once   0
-- @keys 2+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/count
-- @include primitives/clock
-- @include primitives/log
-- @include primitives/cooldown
-- @include primitives/attempts

return each(2, 8, function(k, a)
  local limit, ends = read_attempts(k, a)
  local wait = wait_for_attempt(limit, ends)
  return attempt_answer(wait > 0 and 0 or 1, limit, wait, 0)
end)
