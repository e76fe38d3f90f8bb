-- leave.lua: removes a queue, if nothing of it was listed, flagged or leased meanwhile.
--
-- ARGV  2 host   3 queue   4 token of the rescan that found nothing
-- Returns { now, left (1 | 0), crawl has no queue left and nothing in flight (1 | 0), scans }
local name, c, token = ARGV[2], ARGV[3], ARGV[4]
local h = host(name)
local v = call('HMGET', h.key, 'l:' .. c, 'b:' .. c, 'x:' .. c)
if v[1] ~= token or tonumber(token) <= now then return { tostring(now), 0, 0, scans } end
local listed = call('EXISTS', P .. 'q:' .. name .. ':' .. c) == 1
if listed or v[2] == '2' or (tonumber(v[3]) or 0) > 0 then
  call('HDEL', h.key, 'l:' .. c, 'k:' .. c)
  call('ZREM', P .. 'scans', name .. US .. c)
  if listed then schedule(h) else request_refill(h, c) end
  finish()
  return { tostring(now), 0, 0, scans }
end
drop(h, c)
if h.la ~= '' then schedule(h) end
finish()
local w = call('HMGET', P .. 'crawl:' .. number_of(c), 'pairs', 'busy')
local idle = (tonumber(w[1]) or 0) <= 0 and (tonumber(w[2]) or 0) <= 0
return { tostring(now), 1, idle and 1 or 0, scans }
