-- idle.lua: how much of a crawl is in the frontier.
--
-- ARGV  2 crawl
-- Returns { now, queues in due sets, URLs leased or delayed, budget left (-1: none) }
local v = call('HMGET', P .. 'crawl:' .. ARGV[2], 'pairs', 'busy', 'left')
return { tostring(now), tonumber(v[1]) or 0, tonumber(v[2]) or 0, tonumber(v[3]) or -1 }
