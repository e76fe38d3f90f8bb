-- preamble.lua: stands in front of every script.
--
-- KEYS[1]  {shard}:epoch  HASH  n        epoch number allotted by the store
--                               run_id   the server's, when the epoch began
--                               layout   version of this key map
--                               quiet    ms: before this (plus its delay) no host of this epoch is asked
--                               ctr      last lease counter
--                               skew     ms added to the server's clock (tests only)
-- ARGV[1]  the epoch the caller believes in; another one is refused
--
-- Keys of an epoch, all under P = {shard}:e<n>:
--   due:<lane>        ZSET  host -> ms it may next be asked. A host stands in one of due:high|batch|slow
--   due:solo          ZSET  hosts whose head is a suspect (two crashes): asked with nothing else in flight
--   host:<host>       HASH  i      1: its facts were introduced from the store
--                           nx bl  ms: floor of the next start; blocked until
--                           ls     ms: the base of the delay: last start, or the end of a transfer broken off
--                           op rd ad cd   ms: delay by operator, robots, adaptive, crawls of the ring
--                           oph ph per_host by operator; in force
--                           out un slots out; slots out whose start is not reported yet (per_host > 1)
--                           fl sl  consecutive failures; 1: slow or failing
--                           ow la  process that asked it last; lane it stands in
--                           tn     turns taken, for the 4-of-5 rule between lanes
--                           q:<c> x:<c> b:<c> k:<c> l:<c>   of crawl c's queue here: 1 in the ring; delayed + leased;
--                                  backlog flag (2: raised while a scan held the lock); refill cursor; scan lock (ms)
--                           r:<origin>  "until:fetched" of its robots rules, or "p<until>" while they are being fetched
--   ring:<host>       LIST  crawls with work on the host, whose turn is next first
--   q:<host>:<crawl>  LIST  entries, the head of that crawl's work there
--   crawl:<c>         HASH  st lane dl ph left ver pairs busy
--   starved:<c>       SET   hosts passed over because the crawl's budget is spent for now
--   play              HASH  lane -> pairs (crawl, host) loaded
--   slots sd          ZSET, HASH  id -> expiry; "host leased_ms delay ph crawl"
--   leases ld lt      ZSET, HASH, HASH  id -> expiry; the lease as granted; "start end" once released
--   delayed           ZSET  host 0x1f crawl 0x1f entry -> ms
--   scans             ZSET  host 0x1f crawl -> expiry of the scan that was asked for
--   reaped            LIST  what the store must learn of expired slots and leases
--   owner:<id>        STRING  lives while the process does
--   seen:<c>:<g>:<b>, seen:<c>   see seen.lua
--   wake              LIST  rouses Beat
local held = redis.call('HMGET', KEYS[1], 'n', 'skew', 'quiet', 'ctr')
if held[1] ~= ARGV[1] then
  return redis.error_reply('EPOCH ' .. (held[1] or 'none'))
end
local P = string.match(KEYS[1], '^{[^}]*}') .. ':e' .. ARGV[1] .. ':'
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000) + (tonumber(held[2]) or 0)
local quiet = tonumber(held[3]) or 0
local GRACE, SCAN_LOCK = 10, 10000
local US = '\31'
local max, min, floor = math.max, math.min, math.floor

local function split(text)
  local out, n, from = {}, 0, 1
  while true do
    local at = string.find(text, US, from, true)
    n = n + 1
    if not at then
      out[n] = string.sub(text, from)
      return out
    end
    out[n] = string.sub(text, from, at - 1)
    from = at + 1
  end
end

-- A host's numbers, read once per script and kept in step with what is written.
local hosts = {}
local function host(name)
  local h = hosts[name]
  if h then return h end
  local v = redis.call('HMGET', P .. 'host:' .. name, 'i', 'nx', 'bl', 'ls', 'op', 'rd', 'ad', 'cd', 'ph', 'out', 'un',
    'sl', 'ow', 'la', 'oph', 'tn', 'fl')
  h = {
    key = P .. 'host:' .. name, known = v[1], nx = tonumber(v[2]) or 0, bl = tonumber(v[3]) or 0,
    ls = tonumber(v[4]) or 0, op = tonumber(v[5]) or 0, rd = tonumber(v[6]) or 0, ad = tonumber(v[7]) or 0,
    cd = tonumber(v[8]) or 0, ph = tonumber(v[9]) or 1, out = tonumber(v[10]) or 0, un = tonumber(v[11]) or 0,
    sl = v[12] == '1', ow = v[13], la = v[14], oph = tonumber(v[15]), tn = tonumber(v[16]) or 0, fl = v[17] or '0',
  }
  hosts[name] = h
  return h
end

local crawls = {}
local function crawl(c)
  local r = crawls[c]
  if r ~= nil then return r end
  local v = redis.call('HMGET', P .. 'crawl:' .. c, 'st', 'lane', 'dl', 'ph', 'left', 'ver')
  if v[1] then
    r = { st = v[1], lane = v[2] or 'batch', dl = tonumber(v[3]) or 0, ph = tonumber(v[4]) or 1,
      left = tonumber(v[5]) or -1, ver = v[6] or '0' }
  else
    r = false
  end
  crawls[c] = r
  return r
end

local function delay_of(h) return max(h.op, h.rd, h.ad, h.cd) end

-- The earliest start: politeness is a property of this sum, not a check made elsewhere.
local function eligible(h)
  local at = max(h.nx, h.bl)
  if h.ls > 0 then at = max(at, h.ls + delay_of(h) + GRACE) end
  return at
end

local function head_of(h)
  local d = delay_of(h)
  if d <= 0 then return 512 end
  return min(512, max(16, floor(60000 / d)))
end

local function unbench(name, h)
  if h.la then
    redis.call('ZREM', P .. 'due:' .. h.la, name)
    redis.call('HDEL', h.key, 'la')
    h.la = false
  end
end

local function lane_of(name, h)
  if h.sl then return 'slow' end
  for _, c in ipairs(redis.call('LRANGE', P .. 'ring:' .. name, 0, 15)) do
    local r = crawl(c)
    if r and r.lane == 'high' then return 'high' end
  end
  return 'batch'
end

-- Puts a host where it belongs: in one due set, or in none while its slots are out or nobody wants it.
local function bench(name, h, at_least, lane)
  if not h.known or h.out >= h.ph or h.un > 0 or redis.call('LLEN', P .. 'ring:' .. name) == 0 then
    return unbench(name, h)
  end
  lane = lane or lane_of(name, h)
  if h.la and h.la ~= lane then redis.call('ZREM', P .. 'due:' .. h.la, name) end
  redis.call('ZADD', P .. 'due:' .. lane, max(eligible(h), at_least or 0), name)
  if h.la ~= lane then
    redis.call('HSET', h.key, 'la', lane)
    h.la = lane
  end
end

-- The ring's part of delay and per_host; again whenever a crawl joins or leaves, or changes its wishes.
local function weigh(name, h)
  local cd, ph = 0, h.oph or 64
  for _, c in ipairs(redis.call('LRANGE', P .. 'ring:' .. name, 0, -1)) do
    local r = crawl(c)
    if r then cd, ph = max(cd, r.dl), min(ph, r.ph) end
  end
  h.cd, h.ph = cd, ph
  redis.call('HSET', h.key, 'cd', cd, 'ph', ph)
end

local function in_ring(h, c) return redis.call('HEXISTS', h.key, 'q:' .. c) == 1 end

-- False if the lane has as many queues in play as it may: the queue then waits in the store.
local function join_ring(name, h, c, cap)
  if in_ring(h, c) then return true end
  local r = crawl(c)
  if tonumber(redis.call('HGET', P .. 'play', r.lane) or 0) >= cap then return false end
  redis.call('RPUSH', P .. 'ring:' .. name, c)
  redis.call('HSET', h.key, 'q:' .. c, 1)
  redis.call('PERSIST', h.key)
  redis.call('HINCRBY', P .. 'crawl:' .. c, 'pairs', 1)
  redis.call('HINCRBY', P .. 'play', r.lane, 1)
  weigh(name, h)
  return true
end

-- Takes a queue off the host. What is leased stays counted in x until it is settled.
local function drop(name, h, c)
  if not in_ring(h, c) then return end
  local r = crawl(c)
  redis.call('LREM', P .. 'ring:' .. name, 0, c)
  redis.call('UNLINK', P .. 'q:' .. name .. ':' .. c)
  redis.call('HDEL', h.key, 'q:' .. c, 'b:' .. c, 'k:' .. c, 'l:' .. c)
  if tonumber(redis.call('HGET', h.key, 'x:' .. c) or 0) <= 0 then redis.call('HDEL', h.key, 'x:' .. c) end
  redis.call('ZREM', P .. 'scans', name .. US .. c)
  if r then
    redis.call('HINCRBY', P .. 'crawl:' .. c, 'pairs', -1)
    redis.call('HINCRBY', P .. 'play', r.lane, -1)
  end
  weigh(name, h)
  if redis.call('LLEN', P .. 'ring:' .. name) == 0 then
    unbench(name, h)
    -- The store knows its times by now; they must stand here only while they still bind.
    if h.out == 0 then redis.call('PEXPIREAT', h.key, max(now, eligible(h)) + 120000 - (tonumber(held[2]) or 0)) end
  end
end

-- Scans that the caller must carry out: "host crawl token cursor head", cursor '-' for a rescan from the start.
local scans = {}
local function want_scan(name, h, c, cursor)
  local lock = tonumber(redis.call('HGET', h.key, 'l:' .. c) or 0)
  if lock > now then return end
  local token = now + SCAN_LOCK
  if token <= lock then token = lock + 1 end
  redis.call('HSET', h.key, 'l:' .. c, token)
  redis.call('ZADD', P .. 'scans', token, name .. US .. c)
  scans[#scans + 1] = table.concat({ name, c, token, cursor, head_of(h) }, US)
end

-- A queue with nothing listed: refill behind the cursor, rescan when nothing of it is under way, else wait.
local function look_further(name, h, c)
  local v = redis.call('HMGET', h.key, 'b:' .. c, 'k:' .. c, 'x:' .. c)
  if v[1] and v[2] then
    want_scan(name, h, c, v[2])
  elseif (tonumber(v[3]) or 0) <= 0 then
    want_scan(name, h, c, '-')
  end
end

-- One fewer of the queue is delayed or leased; the last one may be what a rescan waits for.
local function less_busy(name, h, c)
  local key = P .. 'crawl:' .. c
  if redis.call('EXISTS', key) == 1 then redis.call('HINCRBY', key, 'busy', -1) end
  local x = tonumber(redis.call('HGET', h.key, 'x:' .. c) or 0)
  if x > 1 then
    redis.call('HSET', h.key, 'x:' .. c, x - 1)
  else
    redis.call('HDEL', h.key, 'x:' .. c)
  end
  if x <= 1 and in_ring(h, c) and redis.call('EXISTS', P .. 'q:' .. name .. ':' .. c) == 0 then
    look_further(name, h, c)
  end
end

local function more_busy(h, c)
  redis.call('HINCRBY', h.key, 'x:' .. c, 1)
  redis.call('HINCRBY', P .. 'crawl:' .. c, 'busy', 1)
end

-- Budget that was granted and not used; hosts passed over meanwhile come back to the bench.
local function give_back(c)
  local r = crawl(c)
  if not r or r.left < 0 then return end
  r.left = r.left + 1
  redis.call('HSET', P .. 'crawl:' .. c, 'left', r.left)
  local name = redis.call('SPOP', P .. 'starved:' .. c)
  if name then bench(name, host(name)) end
end

-- "s" https://<host>, "h" http://<host>, else the origin as it is written in the entry.
local function origin_of(rest, name)
  if string.byte(rest, 1) == 47 then return 's' end
  if string.sub(rest, 1, 6) == 'http:/' and string.byte(rest, 7) ~= 47 then return 'h' end
  local origin = string.match(rest, '^(%a+://[^/]*)')
  if origin == 'http://' .. name then return 'h' end
  if origin == 'https://' .. name then return 's' end
  return origin
end
