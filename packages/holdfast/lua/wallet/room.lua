-- For whoever looks after wallets, which is how they leave: on a server that is full nothing else makes room.

-- Begins to write. A server that is full refuses what may take more room, but not in the middle of a script: once one has written, it may
-- go on. And taking something away is never refused, be it there or not. (Redis 7 has a flag for that; older ones do not know it.)
-- Returns the refusal of a server that writes nothing at all, such as a replica; nil: it may be written.
local function begin_writing(agenda_key)
  local reply = redis.pcall('ZREM', agenda_key, '')
  -- Something else in the agenda's place is a matter of who enters something there.
  if type(reply) == 'table' and reply.err and string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then
    return reply
  end
  return nil
end
