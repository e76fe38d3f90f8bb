-- waits.lua: queues of these lanes wait in the store. Called after the store has recorded it.
--
-- ARGV  2.. lanes
-- Returns { now }
for i = 2, #ARGV do
  call('HINCRBY', P .. 'play', 'w:' .. ARGV[i], 1)
  call('HDEL', P .. 'play', 'l:' .. ARGV[i])
end
return { tostring(now) }
