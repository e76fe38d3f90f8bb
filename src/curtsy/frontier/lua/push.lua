-- push.lua: lists rows that the store has accepted, or raises the backlog flag.
--
-- ARGV  2 queues that may be loaded per lane in this shard
--       3 front (1: to the head of the list, past the flag: robots.txt being followed)
--       4 number of queues, then for each: host, queue, number of rows, then each row "seq 0x1f entry", by seq
-- Returns { now, hosts to introduce, crawls to introduce, scans, queues that must wait in the store }
local cap, front = tonumber(ARGV[2]), ARGV[3] == '1'
local at, unknown_hosts, unknown_crawls, waiting = 5, {}, {}, {}

local function list(h, c, from, n)
  local q, entries = P .. 'q:' .. h.name .. ':' .. c, {}
  if front then
    for i = n, 1, -1 do entries[#entries + 1] = match(ARGV[from + i], '\31(.*)$') end
    return many('LPUSH', q, entries)
  end
  local v = call('HMGET', h.key, 'b:' .. c, 'l:' .. c, 'k:' .. c)
  if v[2] and tonumber(v[2]) > now then return call('HSET', h.key, 'b:' .. c, 2) end
  if v[1] then return end
  local room, was = head_of(h) - call('LLEN', q), tonumber(v[3]) or 0
  local cursor = was
  for i = 1, n do
    local seq, entry = match(ARGV[from + i], '^(%d+)\31(.*)$')
    seq = tonumber(seq)
    -- A row up to the cursor may have been listed by a scan or pushed before; if not, the rescan finds it.
    if seq > cursor then
      if #entries >= room then
        call('HSET', h.key, 'b:' .. c, 1)
        break
      end
      entries[#entries + 1] = entry
      cursor = seq
    end
  end
  if cursor > was then call('HSET', h.key, 'k:' .. c, cursor) end
  many('RPUSH', q, entries)
end

for _ = 1, tonumber(ARGV[4]) do
  local name, c, n = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local r = crawl(c)
  if not r then
    unknown_crawls[#unknown_crawls + 1] = number_of(c)
  elseif r.st == 'running' then
    local h = host(name)
    if join_ring(h, c, cap) then
      list(h, c, at + 2, n)
      if h.known then schedule(h) else unknown_hosts[#unknown_hosts + 1] = name end
    else
      waiting[#waiting + 1] = number_of(c) .. ' ' .. name
    end
  end
  at = at + 3 + n
end
finish()
wake_beat()
return { tostring(now), unknown_hosts, unknown_crawls, scans, waiting }
