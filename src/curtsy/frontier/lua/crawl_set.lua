-- crawl_set.lua: introduces a crawl, or updates its state, options and budget.
--
-- ARGV  2 crawl   3 state   4 lane   5 delay in ms   6 per_host   7 budget left (-1: none)   8 version
--       9 keep (1: an existing budget is not changed)
-- Returns { now }
local c, key = ARGV[2], P .. 'crawl:' .. ARGV[2]
-- The next lease reports it to processes that hold slots for the crawl.
if ARGV[3] == 'running' then
  call('ZREM', P .. 'halted', c)
elseif call('HGET', key, 'st') == 'running' then
  call('ZADD', P .. 'halted', call('HINCRBY', KEYS[1], 'halt', 1), c)
  call('ZREMRANGEBYRANK', P .. 'halted', 0, -1001)
end
call('HSET', key, 'st', ARGV[3], 'lane', ARGV[4], 'dl', ARGV[5], 'ph', ARGV[6], 'ver', ARGV[8])
call(ARGV[9] == '1' and 'HSETNX' or 'HSET', key, 'left', ARGV[7])
if call('HGET', key, 'left') ~= '0' then
  repeat
    local names = call('SPOP', P .. 'starved:' .. c, 1000)
    for _, name in ipairs(names) do schedule(host(name)) end
  until #names < 1000
end
finish()
return { tostring(now) }
