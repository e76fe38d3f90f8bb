-- fleet_heartbeat.lua: a worker's heartbeat: its queues and processes, for a while by the server's clock.
--
-- KEYS  1 {fleet}:workers
-- ARGV  1 worker   2 JSON { queues, processes, shards }   3 ms for which it counts
local clock = redis.call('TIME')
local said = cjson.decode(ARGV[2])
said.until_ms = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000) + tonumber(ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(said))
return 1
