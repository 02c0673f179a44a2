-- Positions in bitmaps. An index is a hash:
--
--   generation        who has begun it. It stands in the name of every bitmap that counts on it, so that with another index, begun after
--                     this one was lost, none of them is read
--   next              the first position that nobody has
--   <16 bytes>        an id, hashed: its position, for good
--
-- Where the positions are the caller's own there is no hash, and the generation is 'own'.
-- @include primitives/count

local OWN = 'own'
local NONE = 'none'

-- What to answer when the caller counts on another index than there is; nil when on this one.
local function other_generation(index, generation)
  if generation == OWN then
    return nil
  end
  local current = redis.call('HGET', index, 'generation') or NONE
  return current ~= generation and { '~', current } or nil
end

-- The position of one member; nil: it has none, or there is something else to answer.
local function position_of(index, generation, member)
  if generation == OWN then
    return tonumber(member)
  end
  local found = redis.call('HMGET', index, 'generation', member)
  local current = found[1] or NONE
  if current ~= generation then
    return nil, { '~', current }
  end
  return found[2] and count_of(found[2]) or nil
end

-- The positions of the members in ARGV[first] to ARGV[last], also of those that have none yet, and what is then to be written to the
-- index; or nil and what to answer instead. Writes nothing itself.
local function positions_of(index, generation, first, last, max)
  local positions, fresh = {}, {}
  if generation == OWN then
    for i = first, last do
      positions[#positions + 1] = tonumber(ARGV[i])
    end
    return positions, fresh
  end
  local found = redis.call('HMGET', index, 'generation', 'next', unpack(ARGV, first, last))
  local current = found[1] or NONE
  -- Without an index there is nobody to give out positions, also for who knows that there is none.
  if current ~= generation or current == NONE then
    return nil, { '~', current }
  end
  if not found[2] then
    damaged()
  end
  local free, given = count_of(found[2]), {}
  for i = first, last do
    local member, known = ARGV[i], found[i - first + 3]
    local position = known and count_of(known) or given[member]
    if not position then
      position = free
      free = free + 1
      given[member] = position
      fresh[#fresh + 1] = member
      fresh[#fresh + 1] = digits(position)
    end
    if position >= max then
      return nil, 'full'
    end
    positions[#positions + 1] = position
  end
  if #fresh > 0 then
    fresh[#fresh + 1] = 'next'
    fresh[#fresh + 1] = digits(free)
  end
  return positions, fresh
end

local function keep_positions(index, fresh)
  if #fresh > 0 then
    redis.call('HSET', index, unpack(fresh))
  end
end
