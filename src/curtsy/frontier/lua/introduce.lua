-- introduce.lua: a host's facts from the store, once per epoch; only then may it be asked.
--
-- ARGV  2 again (1: also for hosts already known: the operator changed something; a block only grows)
--       3 number of hosts, then for each one string, split by 0x1f:
--         host next blocked op oph rd ad failures slow, then pairs: origin, "until:fetched"   ('-' for absent)
-- Answers { now }
local LONGEST_DELAY = 86400000

local function operator(h, field, text)
  local value = tonumber(text)
  if value then
    put(h, field, value)
  elseif h[field] and h[field] ~= 0 then
    call('HDEL', h.key, field)
  end
  return value
end

local function learn(h, f)
  -- Requests of an earlier epoch may still be under way: the delay counts from the end of the quiet time.
  if quiet > now - LONGEST_DELAY and quiet > h.ls then
    h.ls = quiet
    put(h, 'ls', quiet)
  end
  h.bl = max(h.bl, tonumber(f[3]))
  if tonumber(f[6]) then
    h.rd = max(h.rd, tonumber(f[6]))
    put(h, 'rd', h.rd)
  end
  -- Effects that came ahead of the host, from results of an earlier epoch, are newer than the store's.
  if not h.met then
    h.ad, h.fl, h.sl = tonumber(f[7]) or h.ad, f[8], f[9] == '1'
    put(h, 'ad', h.ad)
    put(h, 'fl', h.fl)
    put(h, 'sl', f[9])
  end
  for j = 10, #f, 2 do put(h, 'r:' .. f[j], f[j + 1]) end
end

for i = 1, tonumber(ARGV[3]) do
  local f = split(ARGV[3 + i])
  local h = host(f[1])
  if not h.known or ARGV[2] == '1' then
    if h.known then h.bl = max(h.bl, tonumber(f[3])) else learn(h, f) end
    h.known, h.nx = '1', max(h.nx, tonumber(f[2]))
    put(h, 'i', 1)
    if h.nx > 0 then put(h, 'nx', h.nx) end
    put(h, 'bl', h.bl)
    h.op, h.oph = operator(h, 'op', f[4]) or 0, operator(h, 'oph', f[5])
    weigh(h)
    bench(h)
  end
end
finish()
return { tostring(now) }
