-- drop.lua: queues leave their hosts at once: the crawl was paused or ended, or the host is dead for it.
--
-- ARGV  2 number of queues, then for each: host, crawl
-- Answers { now }
for i = 1, tonumber(ARGV[2]) do
  local name = ARGV[1 + i * 2]
  local h = host(name)
  drop(name, h, ARGV[2 + i * 2])
  if h.la then bench(name, h) end
end
return { tostring(now) }
