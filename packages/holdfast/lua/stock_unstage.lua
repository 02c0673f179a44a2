-- Drops what `stock_stage` set aside, where it is not taken over: others have loaded the sale meanwhile, or it was too late. Where loads are
-- overtaken again and again, as many copies of a large stock as are made within a minute would stand there otherwise.
--
-- KEYS  1 where it was set aside
-- ARGV  –
-- Returns 1, or 0 if there was none
-- @keys 1
-- @resend safe

return redis.call('UNLINK', KEYS[1])
