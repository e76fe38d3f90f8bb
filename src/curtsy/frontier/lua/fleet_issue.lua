-- fleet_issue.lua: how many shifts to send to one queue, counted and reserved in one step, so that two Beats send no duplicates.
--
-- KEYS  1 {fleet}:tickets:<queue>  ZSET  ticket -> ms until which it may be begun
--       2 {fleet}:shifts:<queue>   ZSET  ticket -> ms until which its shift counts as running unless renewed
--       3 {fleet}:workers          HASH  worker -> JSON { queues, processes, shards, until_ms }
-- ARGV  1 the queue's name   2 due hosts   3 requests that a shift has in flight   4 a ticket's life in ms
--       5 ... names for new tickets: no more are issued than there are names
-- Returns { how many of the names were issued, processes of the queue, running shifts, tickets outstanding before }
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local processes = 0
local found = redis.call('HGETALL', KEYS[3])
for i = 1, #found, 2 do
  local worker = cjson.decode(found[i + 1])
  if worker.until_ms <= now then
    redis.call('HDEL', KEYS[3], found[i])
  else
    for _, queue in ipairs(worker.queues) do
      if queue == ARGV[1] then processes = processes + worker.processes end
    end
  end
end
local running, outstanding = redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[1])
local wanted = math.min(math.ceil(tonumber(ARGV[2]) / tonumber(ARGV[3])), math.max(1, processes)) - running - outstanding
local issued = math.max(0, math.min(wanted, #ARGV - 4))
for i = 1, issued do redis.call('ZADD', KEYS[1], now + tonumber(ARGV[4]), ARGV[4 + i]) end
return { issued, processes, running, outstanding }
