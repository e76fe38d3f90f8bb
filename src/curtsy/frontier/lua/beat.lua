-- beat.lua: a process is alive: renews its URL leases.
--
-- ARGV  2 owner   3 URL lease in ms   4 ... ids of its leases
-- Returns { now, ids that are no longer its own }
call('SET', P .. 'owner:' .. ARGV[2], '1', 'PX', ARGV[3])
local lost = {}
for i = 4, #ARGV do
  local expiry = call('ZSCORE', P .. 'leases', ARGV[i])
  if not expiry then
    lost[#lost + 1] = ARGV[i]
  elseif expiry ~= 'inf' then
    call('ZADD', P .. 'leases', 'XX', now + tonumber(ARGV[3]), ARGV[i])
  end
end
return { tostring(now), lost }
