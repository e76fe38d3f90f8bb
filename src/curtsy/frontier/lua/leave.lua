-- leave.lua: a queue leaves the bench, if nothing was listed, flagged or taken up meanwhile.
--
-- ARGV  2 host   3 crawl   4 token of the rescan that found nothing
-- Answers { now, left (1 | 0), crawl has no queue left and nothing under way (1 | 0), scans }
local name, c = ARGV[2], ARGV[3]
local h = host(name)
local v = redis.call('HMGET', h.key, 'l:' .. c, 'b:' .. c, 'x:' .. c)
if v[1] ~= ARGV[4] then return { tostring(now), 0, 0, scans } end
if redis.call('EXISTS', P .. 'q:' .. name .. ':' .. c) == 1 or v[2] == '2' or (tonumber(v[3]) or 0) > 0 then
  redis.call('HDEL', h.key, 'l:' .. c, 'k:' .. c)
  redis.call('ZREM', P .. 'scans', name .. US .. c)
  if redis.call('EXISTS', P .. 'q:' .. name .. ':' .. c) == 1 then bench(name, h) else look_further(name, h, c) end
  return { tostring(now), 0, 0, scans }
end
drop(name, h, c)
local w = redis.call('HMGET', P .. 'crawl:' .. c, 'pairs', 'busy')
local idle = (tonumber(w[1]) or 0) <= 0 and (tonumber(w[2]) or 0) <= 0
return { tostring(now), 1, idle and 1 or 0, scans }
