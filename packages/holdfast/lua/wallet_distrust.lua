-- Makes a wallet's state one of another life, so that nobody believes it any more and whoever comes next loads the wallet from Postgres. What
-- is in it stays until then: loading decides again what was acknowledged from memory and never reached the journal. (Where there is no such
-- thing and nobody comes, it leaves Redis like any state of another life: wallet_tend.)
--
-- KEYS  1 the wallet
-- ARGV  1 the latest epoch that is not to be believed: a state that was loaded since is left alone
-- Returns 1: done · 0: there is nothing to distrust
-- @keys 1
-- @resend safe
-- @include wallet/entry
-- @include wallet/state

local w = read_core(KEYS[1])
if not w or w.epoch > tonumber(ARGV[1]) then
  return 0
end
track(w, KEYS[1], {})
w.life = NO_LIFE
redis.call('HSET', KEYS[1], 'core', format_core(w))
return 1
