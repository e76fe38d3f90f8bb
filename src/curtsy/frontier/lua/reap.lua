-- reap.lua: takes back expired slots, URL leases and scans. First adds to `reaped` what the store must record.
--
-- ARGV  2 at most this many of each
-- Returns { now, number on `reaped`, scans, next expiry or '' }
--   reaped: slot  0x1f id host leased expiry delay ph crawl         a request that may have been sent
--           lease 0x1f id start end crash own_robots solo host crawl delay ph entry (with the crash counted)
--             crash  0  the lease ended: its process was killed, or could not reach a server;  1  its process crashed
--                    (blame.lua);  2  and the URL becomes a dead letter
local limit = tonumber(ARGV[2])

local over = call('ZRANGEBYSCORE', P .. 'slots', '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
for i = 1, #over, 2 do
  local id, expiry = over[i], tonumber(over[i + 1])
  local name, leased, d, ph, c = match(call('HGET', P .. 'ld', 's' .. id), '^(%S+) (%S+) (%S+) (%S+) (%S+)')
  call('RPUSH', P .. 'reaped', table.concat({ 'slot', id, name, leased, expiry, d, ph, c }, US))
  call('ZREM', P .. 'slots', id)
  call('HDEL', P .. 'ld', 's' .. id)
  local h = host(name)
  h.out, h.ls = max(0, h.out - 1), max(h.ls, expiry)
  put(h, 'out', h.out)
  put(h, 'ls', h.ls)
  note_returned(h, id)
  schedule(h)
end

-- The entry with one more crash; a crash while solo is caused by the URL.
local function with_crash(entry, alone)
  local kind, depth, a, x, s, rest = match(entry, '^(%a)(%d+),(%d+),(%d+),(%d+) (.*)$')
  if not kind then
    kind, depth, rest = match(entry, '^(%a)(%d+) (.*)$')
    a, x, s = 0, 0, 0
  end
  s = tonumber(s) + (alone and 1 or 0)
  return kind .. depth .. ',' .. a .. ',' .. (tonumber(x) + 1) .. ',' .. s .. ' ' .. rest, s
end

for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'leases', '-inf', now, 'LIMIT', 0, limit)) do
  local v = call('HMGET', P .. 'ld', id, 't' .. id, 'c' .. id)
  local f = split(v[1])
  local name, c = f[1], f[2]
  local h = host(name)
  local entry, alone, crash = f[#f], 0, 0
  if v[3] then
    entry, alone = with_crash(entry, f[7] == '1')
    crash = 1
  end
  local own_robots = f[8] == '1'
  local condemned = alone >= 2 and not own_robots
  if condemned then crash = 2 end
  local started, ended = match(v[2] or '- -', '^(%S+) (%S+)$')
  -- If only the start was reported, the slot records the request.
  if ended == '-' then started = '-' end
  call('RPUSH', P .. 'reaped', table.concat({ 'lease', id, started, ended, crash, own_robots and 1 or 0,
    f[7], name, number_of(c), f[4], f[5], entry }, US))
  call('HDEL', P .. 'ld', 't' .. id, 'c' .. id)
  if condemned then
    -- Counts as busy until the dead letter is durable: settle(id) ends it and returns its budget.
    call('ZADD', P .. 'leases', '+inf', id)
  else
    call('ZREM', P .. 'leases', id)
    call('HDEL', P .. 'ld', id)
    if own_robots then
      robots_again(h, entry)
    elseif in_ring(h, c) then
      call('LPUSH', P .. 'q:' .. name .. ':' .. c, entry)
    end
    if is_page(entry) then give_back(c) end
    less_busy(name, c)
    schedule(h)
  end
end

for _, member in ipairs(call('ZRANGEBYSCORE', P .. 'scans', '-inf', now, 'LIMIT', 0, limit)) do
  call('ZREM', P .. 'scans', member)
  local f = split(member)
  local h = host(f[1])
  if in_ring(h, f[2]) then
    if call('EXISTS', P .. 'q:' .. f[1] .. ':' .. f[2]) == 0 then request_refill(h, f[2]) else schedule(h) end
  end
end
finish()

local earliest
for _, key in ipairs({ 'slots', 'leases', 'scans' }) do
  local first = call('ZRANGE', P .. key, 0, 0, 'WITHSCORES')
  if first[2] and first[2] ~= 'inf' then earliest = min(earliest or tonumber(first[2]), tonumber(first[2])) end
end
return { tostring(now), call('LLEN', P .. 'reaped'), scans, earliest and tostring(earliest) or '' }
