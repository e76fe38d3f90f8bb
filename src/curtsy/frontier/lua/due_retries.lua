-- due_retries.lua: included before lease.lua and watch.lua.
--
-- Retries that are due go to the end of their lists: other pages of a host come first, before the host is given up.
local function list_due_retries()
  local due = call('ZRANGEBYSCORE', P .. 'delayed', '-inf', now, 'LIMIT', 0, 256)
  many('ZREM', P .. 'delayed', due)
  for _, member in ipairs(due) do
    local f = split(member)
    local h = host(f[1])
    if in_ring(h, f[2]) then call('RPUSH', P .. 'q:' .. f[1] .. ':' .. f[2], f[3]) end
    less_busy(f[1], f[2])
    schedule(h)
  end
  flush_due()
end
