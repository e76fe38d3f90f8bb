-- reap.lua: slots, URL leases and scans whose time is up. What the store must learn is put on `reaped` first.
--
-- ARGV  2 at most this many of each
-- Answers { now, number on `reaped`, scans, next expiry or '' }
--   reaped: slot  0x1f id host leased expiry delay ph crawl         a request that may have been sent
--           lease 0x1f id start end condemned own_robots solo, then the lease as granted, its entry with the crash counted
local limit = tonumber(ARGV[2])

for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'slots', '-inf', now, 'LIMIT', 0, limit)) do
  local expiry = tonumber(redis.call('ZSCORE', P .. 'slots', id))
  local slot = redis.call('HGET', P .. 'sd', id)
  redis.call('ZREM', P .. 'slots', id)
  redis.call('HDEL', P .. 'sd', id)
  local name, leased, d, ph, c = string.match(slot, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  local h = host(name)
  h.out, h.un, h.ls = max(0, h.out - 1), 0, max(h.ls, expiry)
  redis.call('HSET', h.key, 'out', h.out, 'un', 0, 'ls', h.ls)
  redis.call('RPUSH', P .. 'reaped', table.concat({ 'slot', id, name, leased, expiry, d, ph, c }, US))
  bench(name, h)
end

-- The entry with one more crash; a crash while solo is the URL's own doing.
local function with_crash(entry, alone)
  local kind, depth, a, x, s, rest = string.match(entry, '^(%a)(%d+),(%d+),(%d+),(%d+) (.*)$')
  if not kind then
    kind, depth, rest = string.match(entry, '^(%a)(%d+) (.*)$')
    a, x, s = 0, 0, 0
  end
  s = tonumber(s) + (alone and 1 or 0)
  return kind .. depth .. ',' .. a .. ',' .. (tonumber(x) + 1) .. ',' .. s .. ' ' .. rest, s
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'leases', '-inf', now, 'LIMIT', 0, limit)) do
  local lease = redis.call('HGET', P .. 'ld', id)
  local times = redis.call('HGET', P .. 'lt', id) or '- -'
  local f = split(lease)
  local name, c = f[1], f[2]
  local h = host(name)
  local entry, alone = with_crash(f[#f], f[7] == '1')
  local own_robots = f[8] == '1'
  local condemned = alone >= 2 and not own_robots
  local started, ended = string.match(times, '^(%S+) (%S+)$')
  redis.call('RPUSH', P .. 'reaped', table.concat({ 'lease', id, started, ended, condemned and 1 or 0, own_robots and 1 or 0,
    f[7], name, c, f[4], f[5], entry }, US))
  if string.byte(entry, 1) == 112 then give_back(c) end
  redis.call('HDEL', P .. 'lt', id)
  if condemned then
    -- Counted as busy until the dead letter is durable: settle(id) ends it.
    redis.call('ZADD', P .. 'leases', '+inf', id)
  else
    redis.call('ZREM', P .. 'leases', id)
    redis.call('HDEL', P .. 'ld', id)
    if own_robots then
      redis.call('HDEL', h.key, 'r:' .. origin_of(string.match(entry, ' (.*)$'), name))
    elseif in_ring(h, c) then
      redis.call('LPUSH', P .. 'q:' .. name .. ':' .. c, entry)
    end
    less_busy(name, h, c)
    bench(name, h)
  end
end

for _, member in ipairs(redis.call('ZRANGEBYSCORE', P .. 'scans', '-inf', now, 'LIMIT', 0, limit)) do
  redis.call('ZREM', P .. 'scans', member)
  local f = split(member)
  local h = host(f[1])
  if in_ring(h, f[2]) then
    if redis.call('EXISTS', P .. 'q:' .. f[1] .. ':' .. f[2]) == 0 then look_further(f[1], h, f[2]) else bench(f[1], h) end
  end
end

local earliest
for _, key in ipairs({ 'slots', 'leases', 'scans' }) do
  local first = redis.call('ZRANGE', P .. key, 0, 0, 'WITHSCORES')
  if first[2] and first[2] ~= 'inf' then earliest = min(earliest or tonumber(first[2]), tonumber(first[2])) end
end
return { tostring(now), redis.call('LLEN', P .. 'reaped'), scans, earliest and tostring(earliest) or '' }
