-- blame.lua: the process that held these leases crashed by itself. The reaper takes them back at once, and counts it.
--
-- ARGV  2 ... ids of leases
-- Returns { now, how many of them were still leased }
local stood = 0
for i = 2, #ARGV do
  local expiry = call('ZSCORE', P .. 'leases', ARGV[i])
  if expiry and expiry ~= 'inf' then
    stood = stood + 1
    call('HSET', P .. 'ld', 'c' .. ARGV[i], '1')
    call('ZADD', P .. 'leases', 'XX', str(min(now, tonumber(expiry))), ARGV[i])
  end
end
return { tostring(now), stood }
