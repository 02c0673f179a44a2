-- What time the server has that keeps a wallet. Changes nothing.
--
-- KEYS  1 the wallet
-- ARGV  none
-- Returns milliseconds since 1970
-- @keys 1
-- @resend safe
-- @readonly
-- @include wallet/server

return server_clock()
