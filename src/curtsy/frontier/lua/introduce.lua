-- introduce.lua: a host's facts from the store, once per epoch; it receives no request before.
--
-- ARGV  2 again (1: also for hosts already known: the operator changed something, a block only grows;
--                2: the operator also lifts the block: the host is due one delay after its last start)
--       3 number of hosts, then for each one string, split by 0x1f:
--         host next blocked op oph rd ad failures slow, then pairs: origin, "until:fetched"   ('-' for absent)
-- Returns { now }
local LONGEST_DELAY = 86400000

local function learn(h, f)
  -- Requests of an earlier epoch may still be in flight: the delay counts from the end of the quiet period.
  if quiet > now - LONGEST_DELAY and quiet > h.ls then
    h.ls = quiet
    put(h, 'ls', quiet)
  end
  h.bl = max(h.bl, tonumber(f[3]))
  if tonumber(f[6]) then h.rd = max(h.rd, tonumber(f[6])) end
  -- Effects of results of an earlier epoch that arrived before this are newer than the store's.
  if not h.met then
    h.ad, h.fl, h.sl, h.met = tonumber(f[7]) or h.ad, tonumber(f[8]), f[9] == '1', true
  end
  for j = 10, #f, 2 do put(h, 'r:' .. f[j], f[j + 1]) end
end

for i = 1, tonumber(ARGV[3]) do
  local f = split(ARGV[3 + i])
  local h = host(f[1])
  if not h.known or ARGV[2] ~= '0' then
    if not h.known then
      learn(h, f)
      h.known, h.nx = true, max(h.nx, tonumber(f[2]))
    else
      -- The store's next start includes an older, perhaps longer delay; here the last start itself is known.
      h.bl = max(h.bl, tonumber(f[3]))
    end
    if ARGV[2] == '2' then h.bl, h.nx = tonumber(f[3]), min(h.nx, tonumber(f[2])) end
    h.op, h.oph = tonumber(f[4]) or 0, tonumber(f[5]) or 0
    weigh(h)
    schedule(h)
  end
end
finish()
wake_beat()
return { tostring(now) }
