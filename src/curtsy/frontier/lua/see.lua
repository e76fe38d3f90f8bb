-- see.lua: fingerprints that the store holds enter the filter. Keys as in seen.lua; over the cap whole buckets go.
--
-- seen            HASH  total entries of all crawls
-- ARGV  2 cap: entries of all crawls together   3 crawl   4 ... fingerprints
-- Answers { now, added }
local cap, c = tonumber(ARGV[2]), ARGV[3]
local meta = P .. 'seen:' .. c
local v = redis.call('HMGET', meta, 'g', 'n', 'o', 'd')
local g, n, o, d = tonumber(v[1]) or 0, tonumber(v[2]) or 0, tonumber(v[3]) or 0, tonumber(v[4]) or 0
local added = 0
for i = 4, #ARGV do
  local buckets = 64 * 4 ^ g
  if n >= 256 * buckets then
    g, n = g + 1, 0
    buckets = buckets * 4
  end
  local fp = ARGV[i]
  if redis.call('SADD', meta .. ':' .. g .. ':' .. (tonumber(string.sub(fp, -12)) % buckets), fp) == 1 then
    n, added = n + 1, added + 1
  end
end
local total = redis.call('HINCRBY', P .. 'seen', 'total', added)
local budget = 512
while total > cap and budget > 0 and o <= g do
  local key = meta .. ':' .. o .. ':' .. d
  local size = redis.call('SCARD', key)
  if size > 0 then
    redis.call('UNLINK', key)
    total = redis.call('HINCRBY', P .. 'seen', 'total', -size)
    if o == g then n = n - size end
  end
  d, budget = d + 1, budget - 1
  if d >= 64 * 4 ^ o then
    if o == g then d = 0 break end
    o, d = o + 1, 0
  end
end
redis.call('HSET', meta, 'g', g, 'n', n, 'o', o, 'd', d)
return { tostring(now), added }
