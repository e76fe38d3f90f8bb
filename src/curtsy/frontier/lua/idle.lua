-- idle.lua: how much of a crawl is here.
--
-- ARGV  2 crawl
-- Answers { now, queues on the bench, URLs leased or delayed, budget left (-1: none) }
local v = call('HMGET', P .. 'crawl:' .. ARGV[2], 'pairs', 'busy', 'left')
return { tostring(now), tonumber(v[1]) or 0, tonumber(v[2]) or 0, tonumber(v[3]) or -1 }
