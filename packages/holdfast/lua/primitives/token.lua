-- Who has something: 32 hex characters that stand for a token.
local function check_token(value)
  if value and not (#value == 32 and string.match(value, '^%x+$')) then
    damaged()
  end
  return value
end
