-- fleet_begin.lua: a shift begins with its ticket, or renews its entry among the running ones.
--
-- KEYS  1 {fleet}:tickets:<queue>   2 {fleet}:shifts:<queue>
-- ARGV  1 the ticket   2 ms for which the shift counts as running   3 renew (1: it has begun before)
-- Returns 1, or 0 if the ticket came late
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
if ARGV[3] == '0' then
  local expiry = redis.call('ZSCORE', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[1], ARGV[1])
  if not expiry or tonumber(expiry) <= now then return 0 end
end
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[2]), ARGV[1])
return 1
