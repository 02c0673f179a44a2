-- What is known of a token, in one string, so that one command writes it with its end:
--
--   1 LIVE <generation> <issued> <expires>\n<payload>
--   1 USED <key> <issued> <expires>\n<payload>       for a while, so that who has used it gets the same answer again
--   1 REVOKED - <issued> <expires>\n                 until it would have expired
--
-- `1` is the version of this layout. Generation and key are 32 hex characters. A token lives as long as the generation of its subject is the
-- one that it was issued under: so all tokens of a subject end in one step, by the end of their generation.

local STATES = { LIVE = true, USED = true, REVOKED = true }

local function read_record(key)
  local value = redis.call('GET', key)
  if not value then
    return nil
  end
  local state, mark, issued, expires, from = string.match(value, '^1 ([A-Z]+) (%S+) (%d+) (%d+)\n()')
  if not STATES[state] then
    damaged()
  end
  if state ~= 'REVOKED' then
    check_token(mark)
  end
  return { state = state, mark = mark, issued = issued, expires = expires, payload = string.sub(value, from) }
end

local function line(state, mark, issued, expires)
  return '1 ' .. state .. ' ' .. mark .. ' ' .. issued .. ' ' .. expires .. '\n'
end

-- Whether it can be used: not used, not revoked, and its generation has not ended.
local function is_live(record, generation_key)
  return record.state == 'LIVE' and check_token(redis.call('GET', generation_key)) == record.mark
end
