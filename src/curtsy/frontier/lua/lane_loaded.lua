-- lane_loaded.lua: the caller has loaded the waiting queues of a lane, as far as there was room.
--
-- ARGV  2 lane   3 mark, as returned by room.lua   4 none wait any more (1 | 0)   5 ms until the next check
-- Returns { now }
local lane, mark, none, pause = ARGV[2], ARGV[3], ARGV[4] == '1', tonumber(ARGV[5])
-- Another mark: more queues began to wait since the store was read.
if call('HGET', P .. 'play', 'w:' .. lane) ~= mark then
  call('HDEL', P .. 'play', 'l:' .. lane)
elseif none then
  call('HDEL', P .. 'play', 'l:' .. lane, 'w:' .. lane)
else
  call('HSET', P .. 'play', 'l:' .. lane, now + pause)
end
return { tostring(now) }
