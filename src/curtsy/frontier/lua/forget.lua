-- forget.lua: a crawl has ended: its filter and its numbers go. A few buckets per call; call again until `left` is 0.
--
-- ARGV  2 crawl   3 buckets per call
-- Answers { now, left (1 | 0) }
local c, budget = ARGV[2], tonumber(ARGV[3])
local meta = P .. 'seen:' .. c
local v = redis.call('HMGET', meta, 'g', 'o', 'd')
if v[1] then
  local g, o, d = tonumber(v[1]), tonumber(v[2]) or 0, tonumber(v[3]) or 0
  while budget > 0 and o <= g do
    local key = meta .. ':' .. o .. ':' .. d
    local size = redis.call('SCARD', key)
    if size > 0 then
      redis.call('UNLINK', key)
      redis.call('HINCRBY', P .. 'seen', 'total', -size)
    end
    d, budget = d + 1, budget - 1
    if d >= 64 * 4 ^ o then o, d = o + 1, 0 end
  end
  if o <= g then
    redis.call('HSET', meta, 'o', o, 'd', d)
    return { tostring(now), 1 }
  end
end
redis.call('UNLINK', meta, P .. 'starved:' .. c)
if redis.call('HGET', P .. 'crawl:' .. c, 'busy') == '0' then redis.call('UNLINK', P .. 'crawl:' .. c) end
return { tostring(now), 0 }
