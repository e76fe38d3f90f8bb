-- forget.lua: a crawl has ended: removes its filter and counters. A few buckets per call; call again until `left` is 0.
--
-- ARGV  2 crawl   3 buckets per call
-- Returns { now, left (1 | 0) }
local c, budget = ARGV[2], tonumber(ARGV[3])
local meta = P .. 'seen:' .. c
-- fo fd: the progress of the removal; not o and d, because buckets dropped from the newest generation fill again.
local v = call('HMGET', meta, 'g', 'o', 'fo', 'fd')
if v[1] then
  local g, o, d = tonumber(v[1]), tonumber(v[3] or v[2]) or 0, tonumber(v[4]) or 0
  local gone = 0
  while budget > 0 and o <= g do
    local key = meta .. ':' .. o .. ':' .. d
    local size = call('SCARD', key)
    if size > 0 then
      call('UNLINK', key)
      gone = gone + size
    end
    d, budget = d + 1, budget - 1
    if d >= 64 * 4 ^ o then o, d = o + 1, 0 end
  end
  call('HINCRBY', P .. 'seen', 'total', -gone)
  if o <= g then
    call('HSET', meta, 'fo', o, 'fd', d)
    return { tostring(now), 1 }
  end
end
call('HDEL', P .. 'seen', c)
call('UNLINK', meta, P .. 'starved:' .. c)
call('ZREM', P .. 'halted', c)
local r = crawl(c)
if r then
  -- Its counters stay until the last lease ends.
  if tonumber(call('HGET', P .. 'crawl:' .. c, 'busy') or 0) > 0 then
    call('HSET', P .. 'crawl:' .. c, 'st', 'gone')
  else
    call('UNLINK', P .. 'crawl:' .. c)
  end
end
return { tostring(now), 0 }
