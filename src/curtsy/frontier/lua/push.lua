-- push.lua: lists rows that the store has accepted, or raises the backlog flag.
--
-- ARGV  2 queues in play allowed per lane   3 front (1: to the head of the list, past the flag: robots.txt being followed)
--       4 number of queues, then for each: host, crawl, number of rows, then each row "seq 0x1f entry", by seq
-- Answers { now, hosts to introduce, crawls to introduce, scans, queues left in the store }
local cap, front = tonumber(ARGV[2]), ARGV[3] == '1'
local at, unknown_hosts, unknown_crawls, waiting = 5, {}, {}, 0

local function list(name, h, c, from, n)
  local q = P .. 'q:' .. name .. ':' .. c
  if front then
    for i = n, 1, -1 do redis.call('LPUSH', q, split(ARGV[from + i])[2]) end
    return
  end
  local v = redis.call('HMGET', h.key, 'b:' .. c, 'l:' .. c, 'k:' .. c)
  if v[2] and tonumber(v[2]) > now then return redis.call('HSET', h.key, 'b:' .. c, 2) end
  if v[1] then return end
  local room = head_of(h) - redis.call('LLEN', q)
  local cursor = tonumber(v[3]) or 0
  for i = 1, min(n, room) do
    local f = split(ARGV[from + i])
    redis.call('RPUSH', q, f[2])
    cursor = max(cursor, tonumber(f[1]))
  end
  redis.call('HSET', h.key, 'k:' .. c, cursor)
  if n > room then redis.call('HSET', h.key, 'b:' .. c, 1) end
end

for _ = 1, tonumber(ARGV[4]) do
  local name, c, n = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local r = crawl(c)
  if not r then
    unknown_crawls[#unknown_crawls + 1] = c
  elseif r.st == 'running' then
    local h = host(name)
    if join_ring(name, h, c, cap) then
      list(name, h, c, at + 2, n)
      if h.known then bench(name, h) else unknown_hosts[#unknown_hosts + 1] = name end
    else
      waiting = waiting + 1
    end
  end
  at = at + 3 + n
end
if redis.call('LLEN', P .. 'wake') == 0 then redis.call('LPUSH', P .. 'wake', '1') end
return { tostring(now), unknown_hosts, unknown_crawls, scans, waiting }
