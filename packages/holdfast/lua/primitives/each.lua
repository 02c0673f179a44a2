-- Several of one kind in one call: ARGV[1] is their number, then come the arguments of each; the keys of each stand in a row in KEYS.
-- What goes wrong with one must not cost the others, so it is told in its place: {'!', why}. Whatever can go wrong has to do so before
-- the first write of that one: nothing is taken back. An answer is never nil: that would end the array. And none is an array that begins with
-- bytes of a value: they may be a '!'.

local function damaged()
  error({ err = 'DAMAGED' })
end

-- Redis refuses to write (a replica, no memory left, a disk that is full, too few replicas) at the first write of a script, when nothing is
-- done yet. That is told of the whole call: whoever sent it knows that nothing ran, and may try again.
local REFUSED = { READONLY = true, OOM = true, MISCONF = true, NOREPLICAS = true, MASTERDOWN = true }

-- `act` gets what to add to the number of a key and of an argument of its own.
local function each(keys_each, args_each, act)
  local answers = {}
  for i = 1, tonumber(ARGV[1]) do
    local done, answer = pcall(act, (i - 1) * keys_each, (i - 1) * args_each + 1)
    if done then
      answers[i] = answer
    else
      local why = type(answer) == 'table' and answer.err or tostring(answer)
      if REFUSED[string.match(why, '^%u+')] then
        error({ err = why })
      end
      answers[i] = { '!', why }
    end
  end
  return answers
end
