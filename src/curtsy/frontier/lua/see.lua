-- see.lua: adds fingerprints of stored rows to the filter. Keys as in seen.lua; over the cap whole buckets are dropped.
--
-- ARGV  2 cap: entries of all crawls together   3 crawl   4 ... fingerprints
-- Returns { now, added }
local cap, c = tonumber(ARGV[2]), ARGV[3]
local all = P .. 'seen'

local function add(crawl)
  local meta = all .. ':' .. crawl
  local v = call('HMGET', meta, 'g', 'n')
  local g, n, added = tonumber(v[1]) or 0, tonumber(v[2]) or 0, 0
  for i = 4, #ARGV do
    local buckets = 64 * 4 ^ g
    if n >= 256 * buckets then
      g, n = g + 1, 0
      buckets = buckets * 4
    end
    local fp = ARGV[i]
    if call('SADD', meta .. ':' .. g .. ':' .. (tonumber(sub(fp, -12)) % buckets), fp) == 1 then
      n, added = n + 1, added + 1
    end
  end
  call('HSET', meta, 'g', g, 'n', n)
  call('HINCRBY', all, crawl, added)
  return added, call('HINCRBY', all, 'total', added)
end

-- The crawl with the largest filter loses its oldest buckets.
local function largest()
  local counts, who, most = call('HGETALL', all), nil, 0
  for i = 1, #counts, 2 do
    local n = tonumber(counts[i + 1])
    if counts[i] ~= 'total' and n > most then who, most = counts[i], n end
  end
  return who
end

local function shrink(crawl, surplus)
  local meta = all .. ':' .. crawl
  local v = call('HMGET', meta, 'g', 'n', 'o', 'd')
  local g, n, o, d = tonumber(v[1]) or 0, tonumber(v[2]) or 0, tonumber(v[3]) or 0, tonumber(v[4]) or 0
  local gone, budget = 0, 512
  while gone < surplus and budget > 0 do
    local key = meta .. ':' .. o .. ':' .. d
    local size = call('SCARD', key)
    if size > 0 then
      call('UNLINK', key)
      gone = gone + size
      if o == g then n = n - size end
    end
    d, budget = d + 1, budget - 1
    if d >= 64 * 4 ^ o then o, d = min(o + 1, g), 0 end
  end
  call('HSET', meta, 'n', n, 'o', o, 'd', d)
  call('HINCRBY', all, crawl, -gone)
  call('HINCRBY', all, 'total', -gone)
end

local added, total = add(c)
-- Drops somewhat more than needed, so that a full filter is not searched at every call.
if total > cap then shrink(largest(), total - cap + floor(cap / 64)) end
return { tostring(now), added }
