-- What processes know to be in the journal, the latest of each: so that one who has just started, or had nothing to do, can tell as well
-- whether Postgres lacks anything. A process notes its own and hears those of all.
--
-- KEYS  1 the witnesses
-- ARGV  1 who notes   2 how often it has noted before   3 its witness; empty: it only asks   4 of how many processes they are kept
-- Returns { witness, … } as they were noted
-- @keys 1
-- @resend safe
-- @include wallet/server

local clock = server_clock()

-- A note is: clock, number, witness. What is none was not written here, and must not keep others from hearing those that are.
local function read_note(note)
  local noted, number, witness = string.match(note, '^(%d+) (%d+) (.*)$')
  return tonumber(noted), tonumber(number), witness
end

local before = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(before) == 'table' then
  redis.call('DEL', KEYS[1])
  before = false
end
if ARGV[3] ~= '' then
  local _, number = read_note(before or '')
  -- One that was held up on its way must not take a later one's place.
  if not number or number < tonumber(ARGV[2]) then
    redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f %s %s', clock, ARGV[2], ARGV[3]))
  end
end

local all = redis.call('HGETALL', KEYS[1])
local oldest, oldest_clock
local witnesses = {}
for i = 1, #all, 2 do
  local noted, _, witness = read_note(all[i + 1])
  if not noted then
    redis.call('HDEL', KEYS[1], all[i])
  else
    if not oldest or noted < oldest_clock then
      oldest, oldest_clock = all[i], noted
    end
    witnesses[#witnesses + 1] = witness
  end
end
if #witnesses > tonumber(ARGV[4]) then
  redis.call('HDEL', KEYS[1], oldest)
end
return witnesses
