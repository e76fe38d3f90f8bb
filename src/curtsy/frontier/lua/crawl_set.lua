-- crawl_set.lua: introduces a crawl, or tells the frontier that its state, wishes or budget changed.
--
-- ARGV  2 crawl   3 state   4 lane   5 delay in ms   6 per_host   7 budget left (-1: none, '' to leave it)   8 version
-- Answers { now }
local c = ARGV[2]
redis.call('HSET', P .. 'crawl:' .. c, 'st', ARGV[3], 'lane', ARGV[4], 'dl', ARGV[5], 'ph', ARGV[6], 'ver', ARGV[8])
if ARGV[7] ~= '' then redis.call('HSET', P .. 'crawl:' .. c, 'left', ARGV[7]) end
if ARGV[7] ~= '0' then
  for _, name in ipairs(redis.call('SPOP', P .. 'starved:' .. c, 1000)) do bench(name, host(name)) end
end
return { tostring(now) }
