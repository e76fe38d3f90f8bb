-- beat.lua: a process lives: its URL leases are renewed.
--
-- ARGV  2 owner   3 URL lease in ms   4 ... ids of its leases
-- Answers { now, ids that are no longer its own, states of crawls that do not run: "crawl state" ... }
redis.call('SET', P .. 'owner:' .. ARGV[2], '1', 'PX', ARGV[3])
local lost = {}
for i = 4, #ARGV do
  local expiry = redis.call('ZSCORE', P .. 'leases', ARGV[i])
  if not expiry then
    lost[#lost + 1] = ARGV[i]
  elseif expiry ~= 'inf' then
    redis.call('ZADD', P .. 'leases', 'XX', now + tonumber(ARGV[3]), ARGV[i])
  end
end
return { tostring(now), lost }
