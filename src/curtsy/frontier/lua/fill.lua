-- fill.lua: the answer to a scan: rows of one queue behind its cursor, or from the start for a rescan.
--
-- ARGV  2 host   3 crawl   4 token   5 rescan (1) or refill (0)   6 more (1: the store has rows behind these)
--       7 cursor: seq of the last row read   8 number of rows, then each "retry_ms 0x1f entry"
-- Answers { now, 'ok' | 'empty' | 'stale', scans }
--   empty  a rescan found nothing: the caller asks the store to close the queue, then leaves (the lock is still held)
local name, c, token = ARGV[2], ARGV[3], ARGV[4]
local rescan, more, n = ARGV[5] == '1', ARGV[6] == '1', tonumber(ARGV[8])
local h = host(name)
if redis.call('HGET', h.key, 'l:' .. c) ~= token then return { tostring(now), 'stale', scans } end
local r = crawl(c)
if not r or r.st ~= 'running' then
  drop(name, h, c)
  return { tostring(now), 'ok', scans }
end
local raised = redis.call('HGET', h.key, 'b:' .. c) == '2'
if rescan and n == 0 and not raised then return { tostring(now), 'empty', scans } end

redis.call('HDEL', h.key, 'l:' .. c)
redis.call('ZREM', P .. 'scans', name .. US .. c)
for i = 1, n do
  local at, entry = string.match(ARGV[8 + i], '^(%d+)\31(.*)$')
  if tonumber(at) > now then
    if redis.call('ZADD', P .. 'delayed', 'NX', at, name .. US .. c .. US .. entry) == 1 then more_busy(h, c) end
  else
    redis.call('RPUSH', P .. 'q:' .. name .. ':' .. c, entry)
  end
end
if n > 0 then redis.call('HSET', h.key, 'k:' .. c, ARGV[7]) end
if more or raised then
  redis.call('HSET', h.key, 'b:' .. c, 1)
else
  redis.call('HDEL', h.key, 'b:' .. c)
end
if redis.call('EXISTS', P .. 'q:' .. name .. ':' .. c) == 1 then
  bench(name, h)
else
  if n == 0 and rescan then redis.call('HDEL', h.key, 'k:' .. c) end
  look_further(name, h, c)
end
return { tostring(now), 'ok', scans }
