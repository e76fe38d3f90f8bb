-- fill.lua: the result of a scan: rows of one queue behind its cursor, or from the start for a rescan.
--
-- ARGV  2 host   3 queue   4 token   5 rescan (1) or refill (0)   6 more (1: the store has rows behind these)
--       7 cursor: seq of the last row read   8 number of rows, then each "retry_ms 0x1f entry"
-- Returns { now, 'ok' | 'empty' | 'stale', scans }
--   empty  a rescan found nothing: the caller asks the store to close the queue, then leaves (the lock is still held)
--   stale  the lock belongs to another process or has expired: rows may have been pushed since these were read
local name, c, token = ARGV[2], ARGV[3], ARGV[4]
local rescan, more, n = ARGV[5] == '1', ARGV[6] == '1', tonumber(ARGV[8])
local h = host(name)
local v = call('HMGET', h.key, 'l:' .. c, 'b:' .. c)
if v[1] ~= token or tonumber(token) <= now then return { tostring(now), 'stale', scans } end
local r = crawl(c)
if not r or r.st ~= 'running' then
  drop(h, c)
  finish()
  return { tostring(now), 'ok', scans }
end
local raised = v[2] == '2'
if rescan and n == 0 and not raised then return { tostring(now), 'empty', scans } end

local q = P .. 'q:' .. name .. ':' .. c
call('HDEL', h.key, 'l:' .. c)
call('ZREM', P .. 'scans', name .. US .. c)
local listed = {}
for i = 1, n do
  local at, entry = match(ARGV[8 + i], '^(%d+)\31(.*)$')
  if tonumber(at) > now then
    if call('ZADD', P .. 'delayed', 'NX', at, name .. US .. c .. US .. entry) == 1 then more_busy(name, c) end
  else
    listed[#listed + 1] = entry
  end
end
many('RPUSH', q, listed)
if n > 0 then call('HSET', h.key, 'k:' .. c, ARGV[7]) end
if more or raised then
  call('HSET', h.key, 'b:' .. c, 1)
else
  call('HDEL', h.key, 'b:' .. c)
end
if call('EXISTS', q) == 1 then
  schedule(h)
else
  if n == 0 and rescan then call('HDEL', h.key, 'k:' .. c) end
  request_refill(h, c)
end
finish()
wake_beat()
return { tostring(now), 'ok', scans }
