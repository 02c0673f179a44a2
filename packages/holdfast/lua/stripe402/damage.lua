-- A key that holds another type than it should is damage, and reported as that. Any other error of Redis (no memory, a replica, no permission) is no
-- damage: it is handed on as it is.

local function is_error(reply)
  return type(reply) == 'table' and reply.err ~= nil
end

local function is_wrong_type(reply)
  return string.find(reply.err, 'WRONGTYPE', 1, true) ~= nil
end
