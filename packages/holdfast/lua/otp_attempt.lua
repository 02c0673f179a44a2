-- Lets attempts through, so many within a time; whoever uses the last of them begins a cool-down. A refused one changes nothing, so that
-- nobody is kept out for longer by who goes on trying.
--
-- KEYS  for each: the log of attempts   the cool-down
-- ARGV  1 number of them   then for each: the time, or empty: by the server's clock   attempts   within ms   for how many ms a key outlives
--       its use   ms of the first cool-down, or 0: none   how many times longer the next is   at most ms   for how many ms it is remembered
-- Returns for each: 1 or 0 when it is refused   attempts that count   ms until the next one, or 0: at once   the number of the cool-down
--       that it began, or 0
-- @keys 2+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/count
-- @include primitives/clock
-- @include primitives/log
-- @include primitives/cooldown
-- @include primitives/attempts

return each(2, 8, function(k, a)
  local limit, ends, number = read_attempts(k, a)
  local wait = wait_for_attempt(limit, ends)
  if wait > 0 then
    return attempt_answer(0, limit, wait, 0)
  end
  LOG.take(limit, 1)
  LOG.write(limit)
  local cooldown, began = cooldown_terms(a), 0
  if limit.counted == limit.terms.max and cooldown.length > 0 then
    began = number + 1
    ends = begin_cooldown(KEYS[k + 2], limit.at, began, cooldown)
  end
  return attempt_answer(1, limit, wait_for_attempt(limit, ends), began)
end)
