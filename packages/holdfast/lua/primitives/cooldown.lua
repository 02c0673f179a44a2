-- Cool-downs, under a key as `<until>:<number>`: the ms since 1970 up to which nothing is let through, and how many of them there have been
-- in a row. The key outlives its end for as long as that number is remembered.

local function read_cooldown(key)
  local value = redis.call('GET', key)
  if not value then
    return 0, 0
  end
  local ends, number = string.match(value, '^(%d+):(%d+)$')
  if not ends then
    damaged()
  end
  return count_of(ends), count_of(number)
end

-- The first takes `terms.length`, each after it `terms.growth` times as long as the one before, up to `terms.max`.
local function begin_cooldown(key, at, number, terms)
  local length = math.min(terms.max, terms.length * terms.growth ^ (number - 1))
  redis.call('SET', key, digits(at + length) .. ':' .. digits(number), 'PX', digits(length + terms.remember))
  return at + length
end
