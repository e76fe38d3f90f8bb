-- introduce.lua: a host's facts from the store, once per epoch; only then may it be asked.
--
-- ARGV  2 again (1: also for hosts already known: the operator changed something)
--       3 number of hosts, then for each one string, split by 0x1f:
--         host next blocked op oph rd ad failures slow, then pairs: origin, "until:fetched"   ('-' for absent)
-- Answers { now }
local function number(text) return text ~= '-' and text or nil end
for i = 1, tonumber(ARGV[3]) do
  local f = split(ARGV[3 + i])
  local h = host(f[1])
  local first = not h.known
  if first or ARGV[2] == '1' then
    local set = { 'i', 1 }
    local function put(field, value)
      set[#set + 1] = field
      set[#set + 1] = value
    end
    -- Requests of an earlier epoch may still be under way: the delay counts from the end of the quiet time.
    if first and quiet > now - 60000 then put('ls', max(h.ls, quiet)) end
    put('nx', max(h.nx, tonumber(f[2])))
    put('bl', first and max(h.bl, tonumber(f[3])) or tonumber(f[3]))
    if number(f[4]) then put('op', f[4]) else redis.call('HDEL', h.key, 'op') end
    if number(f[5]) then put('oph', f[5]) else redis.call('HDEL', h.key, 'oph') end
    if first then
      if number(f[6]) then put('rd', f[6]) end
      if number(f[7]) then put('ad', f[7]) end
      put('fl', f[8])
      put('sl', f[9])
      for j = 10, #f, 2 do put('r:' .. f[j], f[j + 1]) end
    end
    redis.call('HSET', h.key, unpack(set))
    hosts[f[1]] = nil
    h = host(f[1])
    weigh(f[1], h)
    if redis.call('LLEN', P .. 'ring:' .. f[1]) == 0 and h.out == 0 then
      redis.call('PEXPIREAT', h.key, max(now, eligible(h)) + 120000 - (tonumber(held[2]) or 0))
    end
    bench(f[1], h)
  end
end
return { tostring(now) }
