-- put_back.lua: puts queues that are open in the store into the due set again, with the backlog flag raised.
--
-- ARGV  2 queues that may be loaded per lane in this shard   3 number of queues, then for each: host, queue
-- Returns { now, hosts to introduce, crawls to introduce, scans, queues that must wait in the store }
local cap = tonumber(ARGV[2])
local unknown_hosts, unknown_crawls, waiting = {}, {}, {}
for i = 1, tonumber(ARGV[3]) do
  local name, c = ARGV[2 + i * 2], ARGV[3 + i * 2]
  local r = crawl(c)
  if not r then
    unknown_crawls[#unknown_crawls + 1] = number_of(c)
  elseif r.st == 'running' then
    local h = host(name)
    local stood = in_ring(h, c)
    if join_ring(h, c, cap) then
      if not stood then call('HSET', h.key, 'b:' .. c, 1) end
      if call('EXISTS', P .. 'q:' .. name .. ':' .. c) == 0 then
        request_refill(h, c)
      elseif h.la == '' or is_browsers(c) then
        schedule(h)
      end
      if not h.known then unknown_hosts[#unknown_hosts + 1] = name end
    else
      waiting[#waiting + 1] = number_of(c) .. ' ' .. name
    end
  end
end
finish()
wake_beat()
return { tostring(now), unknown_hosts, unknown_crawls, scans, waiting }
