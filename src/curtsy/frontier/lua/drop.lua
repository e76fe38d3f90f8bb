-- drop.lua: removes queues from their hosts at once: the crawl was paused or ended, or the host is dead for it.
--
-- ARGV  2 number of queues, then for each: host, crawl
-- Returns { now }
for i = 1, tonumber(ARGV[2]) do
  local h = host(ARGV[1 + i * 2])
  drop(h, ARGV[2 + i * 2])
  if h.bn > 0 then drop(h, ARGV[2 + i * 2] .. 'b') end
  if h.la ~= '' then schedule(h) end
end
finish()
return { tostring(now) }
