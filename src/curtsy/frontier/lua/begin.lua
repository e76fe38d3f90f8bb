-- begin.lua: writes a new epoch, if the server still has the epoch that was read before the number was assigned.
-- Runs without the preamble: there is no epoch yet to compare.
--
-- Numbers are not compared by size: the store's sequence decides, and a server may hold a larger one of another store or
-- of a store that was restored from a backup. If another process was faster, the server has its number.
-- KEYS[1]  {shard}:epoch, see preamble.lua
-- ARGV     1 number that was read ('' for none)   2 new number   3 run_id   4 layout   5 quiet period in ms (0: none)
-- Returns now
local held = redis.call('HGET', KEYS[1], 'n') or ''
if held ~= ARGV[1] then return redis.error_reply('EPOCH ' .. held) end
local clock, quiet = redis.call('TIME'), tonumber(ARGV[5])
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'n', ARGV[2], 'run_id', ARGV[3], 'layout', ARGV[4], 'ctr', 0, 'last', string.format('%d', now), 'quiet',
  quiet > 0 and string.format('%d', now + quiet) or 0)
return string.format('%d', now)
