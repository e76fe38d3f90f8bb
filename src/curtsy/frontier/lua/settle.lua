-- settle.lua: what a commit made durable becomes true here: rules, late slots, URL leases.
--
-- ARGV  2 number of rules, then each "host 0x1f origin 0x1f until 0x1f fetched 0x1f delay" (origin as in the preamble;
--         until 'p<ms>' while a redirect of robots.txt is followed; delay in ms, '-' to leave it)
--       then the number of releases, then each (release.lua): robots entries keep their slot until their rules are here
--       then the number of settled leases, then each "id 0x1f action 0x1f used 0x1f at 0x1f entry"
--         action d  settled for good;  r  again at `at` ms, as `entry`
--         used   1  it counts against max_pages
-- Answers { now, releases, scans, crawls with no queue left and nothing under way }
local at = 2
local rules = tonumber(ARGV[at])
for i = 1, rules do
  local f = split(ARGV[at + i])
  local h = host(f[1])
  if string.byte(f[3], 1) == 112 then
    redis.call('HSET', h.key, 'r:' .. f[2], f[3])
  else
    redis.call('HSET', h.key, 'r:' .. f[2], f[3] .. ':' .. f[4])
  end
  if f[5] ~= '-' then
    h.rd = tonumber(f[5])
    redis.call('HSET', h.key, 'rd', h.rd)
  end
  bench(f[1], h)
end
at = at + 1 + rules

local released = {}
for i = 1, tonumber(ARGV[at]) do released[i] = release(ARGV[at + i]) end
at = at + 1 + #released

local touched = {}
for i = 1, tonumber(ARGV[at]) do
  local f = split(ARGV[at + i])
  local id = f[1]
  local lease = redis.call('HGET', P .. 'ld', id)
  if lease and redis.call('ZREM', P .. 'leases', id) == 1 then
    redis.call('HDEL', P .. 'ld', id)
    redis.call('HDEL', P .. 'lt', id)
    local g = split(lease)
    local name, c, entry = g[1], g[2], g[#g]
    local h = host(name)
    if f[3] ~= '1' and string.byte(entry, 1) == 112 then give_back(c) end
    if f[2] == 'r' and crawl(c) and in_ring(h, c) then
      if redis.call('ZADD', P .. 'delayed', 'NX', f[4], name .. US .. c .. US .. f[5]) == 1 then more_busy(h, c) end
    end
    less_busy(name, h, c)
    touched[c] = true
  end
end

local idle = {}
for c in pairs(touched) do
  local v = redis.call('HMGET', P .. 'crawl:' .. c, 'pairs', 'busy', 'left')
  if (tonumber(v[2]) or 0) <= 0 and ((tonumber(v[1]) or 0) <= 0 or v[3] == '0') then idle[#idle + 1] = c end
end
return { tostring(now), released, scans, idle }
