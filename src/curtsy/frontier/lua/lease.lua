-- lease.lua: gives slots back, then takes slots of due hosts together with the URL to use each for.
--
-- ARGV  2 owner   3 URL lease in ms   4 solo (1: nothing is in flight here, offer suspects only)
--       5 number of releases, then each (release.lua)
--       then the number of start reports, then each "id ago"
--       then the number of lanes, then for each: lane, how many, slot in ms
-- Answers { now, releases, leases, scans, next due or '', suspects due }
--   a lease: id host crawl version delay per_host robots_ms solo own_robots lane failures adaptive entry, split by 0x1f
local owner, lease_ms, solo = ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local at = 5

local released = {}
for i = 1, tonumber(ARGV[at]) do released[i] = release(ARGV[at + i]) end
at = at + 1 + #released
local reports = tonumber(ARGV[at])
for i = 1, reports do report_start(ARGV[at + i]) end
at = at + 1 + reports

-- Retries whose time has come go to the head of their lists.
for _, member in ipairs(redis.call('ZRANGEBYSCORE', P .. 'delayed', '-inf', now, 'LIMIT', 0, 256)) do
  redis.call('ZREM', P .. 'delayed', member)
  local f = split(member)
  local h = host(f[1])
  if in_ring(h, f[2]) then redis.call('LPUSH', P .. 'q:' .. f[1] .. ':' .. f[2], f[3]) end
  less_busy(f[1], h, f[2])
  bench(f[1], h)
end

local ctr = tonumber(held[4]) or 0
local granted = {}
local busy, left = {}, {}

local owners = {}
local function alive(id)
  if owners[id] == nil then owners[id] = redis.call('EXISTS', P .. 'owner:' .. id) == 1 end
  return owners[id]
end

local function grant(name, h, c, r, entry, robots_ms, own_robots, lane, slot_ms)
  ctr = ctr + 1
  local d = delay_of(h)
  local lease = table.concat({ name, c, r.ver, d, h.ph, robots_ms, solo and '1' or '0', own_robots, lane, h.fl, h.ad, entry }, US)
  redis.call('ZADD', P .. 'slots', now + slot_ms, ctr)
  redis.call('HSET', P .. 'sd', ctr, table.concat({ name, now, d, h.ph, c }, ' '))
  redis.call('ZADD', P .. 'leases', now + lease_ms, ctr)
  redis.call('HSET', P .. 'ld', ctr, lease)
  redis.call('HINCRBY', h.key, 'x:' .. c, 1)
  busy[c] = (busy[c] or 0) + 1
  if string.byte(entry, 1) == 112 and r.left > 0 then
    r.left = r.left - 1
    left[c] = r.left
  end
  h.out, h.un, h.ow, h.tn = h.out + 1, h.ph > 1 and 1 or 0, owner, h.tn + 1
  redis.call('HSET', h.key, 'out', h.out, 'un', h.un, 'ow', owner, 'tn', h.tn)
  unbench(name, h)
  granted[#granted + 1] = ctr .. US .. lease
end

-- Crawls take turns; those of a better lane go first, at most 4 turns of 5.
local function turns(name, h)
  local ring = redis.call('LRANGE', P .. 'ring:' .. name, 0, 15)
  if #ring < 2 or h.tn % 5 == 4 then return ring end
  local first, later = {}, {}
  for _, c in ipairs(ring) do
    local r = crawl(c)
    local list = (r and r.lane == 'high') and first or later
    list[#list + 1] = c
  end
  for _, c in ipairs(later) do first[#first + 1] = c end
  return first
end

local function rotate(name, c)
  if redis.call('LLEN', P .. 'ring:' .. name) > 1 then
    redis.call('LREM', P .. 'ring:' .. name, 1, c)
    redis.call('RPUSH', P .. 'ring:' .. name, c)
  end
end

-- Offers one crawl's head on this host. Answers true if granted, else a time before which to leave it (or nil).
local function offer(name, h, c, lane, slot_ms)
  local r = crawl(c)
  if not r or r.st ~= 'running' then return drop(name, h, c) end
  local q = P .. 'q:' .. name .. ':' .. c
  local entry = redis.call('LINDEX', q, 0)
  if not entry then return look_further(name, h, c) end
  local kind = string.byte(entry, 1)
  if kind == 112 and r.left == 0 then
    redis.call('SADD', P .. 'starved:' .. c, name)
    return
  end
  local head, rest = string.match(entry, '^(%S+) ([^\t]*)')
  local robots_ms = 0
  if kind ~= 114 then
    local o = origin_of(rest, name)
    local known = redis.call('HGET', h.key, 'r:' .. o)
    if known and string.byte(known, 1) == 112 and tonumber(string.sub(known, 2)) > now then
      return tonumber(string.sub(known, 2))
    end
    local until_ms, fetched = string.match(known or '', '^(%d+):(%d+)$')
    if not until_ms or tonumber(until_ms) <= now then
      redis.call('HSET', h.key, 'r:' .. o, 'p' .. (now + slot_ms + 1000))
      local prefix = o == 's' and '' or (o == 'h' and 'http:' or o)
      grant(name, h, c, r, 'r0 ' .. prefix .. '/robots.txt', 0, '1', lane, slot_ms)
      rotate(name, c)
      return true
    end
    robots_ms = fetched
  end
  local crashes = tonumber(string.match(head, '^%a%d+,%d+,(%d+)') or 0)
  if crashes >= 2 and not solo then
    bench(name, h, 0, 'solo')
    return now
  end
  redis.call('LPOP', q)
  grant(name, h, c, r, entry, robots_ms, '0', lane, slot_ms)
  rotate(name, c)
  if redis.call('HEXISTS', h.key, 'b:' .. c) == 1 and redis.call('LLEN', q) * 2 < head_of(h) then look_further(name, h, c) end
  return true
end

local function serve(name, lane, slot_ms)
  local h = host(name)
  if h.out >= h.ph or h.un > 0 then return unbench(name, h) end
  if eligible(h) > now then
    bench(name, h, 0, lane)
    return
  end
  local wait
  for _, c in ipairs(turns(name, h)) do
    local answer = offer(name, h, c, lane, slot_ms)
    if answer == true then return true end
    if h.la == 'solo' and lane ~= 'solo' then return end
    if answer then wait = min(wait or answer, answer) end
  end
  if wait then bench(name, h, wait, lane) else unbench(name, h) end
end

-- Affinity is an order, not a gate: own hosts, then free ones, then those whose owner lets them wait.
local function candidates(lane, want)
  local own, free, others = {}, {}, {}
  local due = redis.call('ZRANGEBYSCORE', P .. 'due:' .. lane, '-inf', now, 'WITHSCORES', 'LIMIT', 0, want * 3)
  for i = 1, #due, 2 do
    local h = host(due[i])
    if h.ow == owner then
      own[#own + 1] = due[i]
      if #own >= want then break end
    elseif not h.ow or not alive(h.ow) then
      free[#free + 1] = due[i]
    elseif tonumber(due[i + 1]) + 50 <= now then
      others[#others + 1] = due[i]
    end
  end
  for _, name in ipairs(free) do own[#own + 1] = name end
  for _, name in ipairs(others) do own[#own + 1] = name end
  return own
end

local lanes = tonumber(ARGV[at])
local earliest
for i = 0, lanes - 1 do
  local lane, want, slot_ms = ARGV[at + 1 + i * 3], tonumber(ARGV[at + 2 + i * 3]), tonumber(ARGV[at + 3 + i * 3])
  local got = 0
  if want > 0 then
    for _, name in ipairs(candidates(solo and 'solo' or lane, want)) do
      if got >= want then break end
      if serve(name, solo and 'solo' or lane, slot_ms) then got = got + 1 end
    end
  end
  local first = redis.call('ZRANGE', P .. 'due:' .. lane, 0, 0, 'WITHSCORES')
  if first[2] and want > got then earliest = min(earliest or tonumber(first[2]), tonumber(first[2])) end
end
local first = redis.call('ZRANGE', P .. 'delayed', 0, 0, 'WITHSCORES')
if first[2] then earliest = min(earliest or tonumber(first[2]), tonumber(first[2])) end

if #granted > 0 then
  redis.call('HSET', KEYS[1], 'ctr', ctr)
  for c, n in pairs(busy) do redis.call('HINCRBY', P .. 'crawl:' .. c, 'busy', n) end
  for c, n in pairs(left) do redis.call('HSET', P .. 'crawl:' .. c, 'left', n) end
end
local suspects = redis.call('ZCOUNT', P .. 'due:solo', '-inf', now)
return { tostring(now), released, granted, scans, earliest and tostring(earliest) or '', suspects }
