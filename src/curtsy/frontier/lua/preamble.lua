-- preamble.lua: included before every script.
--
-- KEYS[1]  {shard}:epoch  HASH  n        epoch number assigned by the store
--                               run_id   the server's, when the epoch began
--                               layout   version of this key map
--                               quiet    ms: no host of this epoch receives a request before this, plus its delay
--                               ctr      last lease counter
--                               scan     last scan number
--                               halt     how many times a crawl was paused or ended
--                               last     ms of the newest change (stamp.lua)
--                               skew     ms added to the server's clock (tests only)
-- ARGV[1]  the caller's epoch, and the newest change known to it, as <n>:<ms>. Another epoch is refused, and so is
--          a server whose newest change is older: it holds an old snapshot
--
-- Keys of an epoch, all under P = {shard}:e<n>:
-- A queue is one crawl's work on one host. Its name is the crawl, or `<crawl>b` if its pages wait for a browser. Below,
-- c is a queue or a crawl: counts by crawl include both of its queues.
--   due:<lane>        ZSET  host -> ms of its next request at the earliest. A host is in one of due:high|batch|slow,
--                           and in due:render too if pages of it wait for a browser
--   due:solo          ZSET  hosts whose head is a suspect (two crashes): requested with nothing else in flight
--   due:render:solo   ZSET  the same for pages that wait for a browser
--   host:<host>       HASH  ls     ms: the base of the delay: last start, or the end of an aborted transfer
--                           out    slots in use
--                           ow la  process that last requested it; its due set
--                           v      what rarely changes, as one MessagePack array in the order of PACKED:
--                             known  its facts were introduced from the store
--                             nx bl  ms: floor of the next start; blocked until
--                             op rd ad cd   ms: delay by operator, robots, adaptive, crawls of the ring
--                             oph ph per_host by operator (0: not set); in force
--                             un     the slot whose start is not reported yet (per_host > 1); '?' if it was
--                                    granted while one request was allowed: its start is known with its end; '0' if
--                                    slots in use were granted without a delay: their starts are not reported
--                             fl sl  consecutive failures; slow or failing
--                             met    ad, fl, sl include the effect of a request
--                             rn r1 hi tn   of the ring: its length; its only crawl; a crawl of lane high is in it
--                                    ('slow': only crawls of that);
--                                    slots taken, for the 4-of-5 rule between lanes
--                             bn bt  length of the browsers' ring; the last slot was a browser's
--                           q:<c> x:<c> b:<c> k:<c> l:<c>   of crawl c's queue here: its lane; delayed + leased;
--                                  backlog flag (2: raised while a scan held the lock); cursor: rows up to it were
--                                  listed or read; scan lock "<expiry>.<scan>"
--                           r:<origin>  "until:fetched" of its robots rules, "p<until>" while they are being fetched,
--                                  "c<crashes>,<solo crashes>" if workers died while fetching them
--   ring:<host>       LIST  crawls with work on the host, the next one first
--   bring:<host>      LIST  queues with pages that wait for a browser, likewise
--   q:<host>:<crawl>  LIST  entries, the head of that crawl's work there
--   crawl:<c>         HASH  st lane dl ph left ver pairs busy
--   halted            ZSET  crawls that were paused or have ended -> `halt` when they did: the newest 1,000
--   starved:<c>       SET   hosts that were skipped because the crawl's budget is spent for now
--   play              HASH  <lane> pairs (crawl, host) loaded, `render` those of them with pages that wait for a
--                           browser, counted twice; w:<lane> increases whenever queues of it had to wait
--                           in the store, absent if none wait; l:<lane> ms: until then a process loads them
--   slots leases      ZSET  id -> expiry
--   ld                HASH  <id> the lease as granted; s<id> its slot "host leased_ms delay ph crawl", where
--                           leased_ms is the end of the request before it if the slot has passed on in a run;
--                           t<id> "start end" once released; c<id> its process crashed by itself
--   delayed           ZSET  host 0x1f crawl 0x1f entry -> ms
--   scans             ZSET  host 0x1f crawl -> expiry of the requested scan
--   reaped            LIST  expired slots and leases that the store must record
--   owner:<id>        STRING  exists while the process lives
--   seen, seen:<c>, seen:<c>:<g>:<b>   see seen.lua
--   wake              LIST  wakes Beat
--
-- A script collects its changes of hosts, due sets and crawl counts, and finish() writes them: a page costs the server
-- a few calls, not forty. Fields of a queue (q: x: b: k: l:) are written where they change.
local call = redis.call
local held = call('HMGET', KEYS[1], 'n', 'skew', 'quiet', 'ctr', 'halt', 'last')
local epoch, known = string.match(ARGV[1], '^(%d+):(%d+)$')
if held[1] ~= epoch then
  return redis.error_reply('EPOCH ' .. (held[1] or 'none'))
end
if (tonumber(held[6]) or 0) < tonumber(known) then
  return redis.error_reply('EPOCH ' .. epoch .. ' went back in time')
end
local P = string.match(KEYS[1], '^{[^}]*}') .. ':e' .. epoch .. ':'
local clock = call('TIME')
local skew = tonumber(held[2]) or 0
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000) + skew
local quiet = tonumber(held[3]) or 0
local GRACE, SCAN_LOCK, FADE = 10, 10000, 120000
-- ms by which lanes that share a host delay each other: plain pages and visits alternate
local ALTERNATION_MS = 250
local US = '\31'
local max, min, floor = math.max, math.min, math.floor
local byte, sub, match = string.byte, string.sub, string.match

local function split(text)
  local out, n, from = {}, 0, 1
  while true do
    local at = string.find(text, US, from, true)
    n = n + 1
    if not at then
      out[n] = sub(text, from)
      return out
    end
    out[n] = sub(text, from, at - 1)
    from = at + 1
  end
end

-- A whole number as text. Lua formats numbers in commands and strings as if they had fractions, which costs as much as
-- a short command.
local texts = {}
local function str(n)
  local text = texts[n]
  if not text then
    text = string.format('%d', n)
    texts[n] = text
  end
  return text
end

-- One command for a whole list of arguments; an even step keeps pairs together.
local function many(command, key, list)
  for from = 1, #list, 4000 do call(command, key, unpack(list, from, min(#list, from + 3999))) end
end

-- The crawl of a queue; the other queue of its crawl; whether its pages wait for a browser.
local function number_of(c) return byte(c, -1) == 98 and sub(c, 1, -2) or c end
local function sibling_of(c) return byte(c, -1) == 98 and sub(c, 1, -2) or c .. 'b' end
local function is_browsers(c) return byte(c, -1) == 98 end

-- Pages count against the budget, plain or rendered.
local function is_page(entry)
  local kind = byte(entry, 1)
  return kind == 112 or kind == 98
end

-- Hosts: read once per script, changes collected.
local PACKED = { 'known', 'nx', 'bl', 'op', 'rd', 'ad', 'cd', 'oph', 'ph', 'un', 'fl', 'sl', 'met', 'rn', 'r1', 'hi', 'tn',
  'bn', 'bt' }
local NEW = { false, 0, 0, 0, 0, 0, 0, 0, 1, '', 0, false, false, 0, '', false, 0, 0, false }
local hosts, changed, moved, browsers_moved = {}, {}, {}, {}
local function host(name)
  local h = hosts[name]
  if h then return h end
  local key = P .. 'host:' .. name
  local f = call('HMGET', key, 'v', 'ls', 'out', 'ow', 'la')
  local v, la = f[1] and cmsgpack.unpack(f[1]) or NEW, f[5] or ''
  h = {
    name = name, key = key, ls = tonumber(f[2] or 0), out = tonumber(f[3] or 0), ow = f[4] or '', la = la, was = la,
    known = v[1], nx = v[2], bl = v[3], op = v[4], rd = v[5], ad = v[6], cd = v[7], oph = v[8], ph = v[9], un = v[10],
    fl = v[11], sl = v[12], met = v[13], rn = v[14], r1 = v[15], hi = v[16], tn = v[17],
    bn = v[18], bt = v[19],
  }
  hosts[name] = h
  return h
end

-- A field of `v` has changed.
local function touch(h)
  h.touched = true
  if not h.set then
    h.set = { h.key }
    changed[#changed + 1] = h
  end
end

local function put(h, field, value)
  local set = h.set
  if not set then
    set = { h.key }
    h.set = set
    changed[#changed + 1] = h
  end
  local n = #set
  set[n + 1], set[n + 2] = field, value
end

local crawls, busy = {}, {}
local function crawl(c)
  local r = crawls[c]
  if r ~= nil then return r end
  if is_browsers(c) then
    r = crawl(number_of(c))
    crawls[c] = r
    return r
  end
  local v = call('HMGET', P .. 'crawl:' .. c, 'st', 'lane', 'dl', 'ph', 'left', 'ver')
  if v[1] then
    r = { n = c, st = v[1], lane = v[2] or 'batch', dl = tonumber(v[3]) or 0, ph = tonumber(v[4]) or 1,
      left = tonumber(v[5]) or -1, ver = v[6] or '0' }
  else
    r = false
  end
  crawls[c] = r
  return r
end

local function delay_of(h) return max(h.op, h.rd, h.ad, h.cd) end

-- The earliest start: politeness is a property of this sum, not a check made elsewhere. Without a delay there is no
-- pause that an inexact clock could shorten.
local function eligible(h)
  local at = max(h.nx, h.bl)
  if h.ls > 0 then
    local d = delay_of(h)
    at = max(at, d > 0 and h.ls + d + GRACE or h.ls)
  end
  return at
end

-- Every slot is in use, or the start from which the delay counts is not known yet (irrelevant without a delay).
local function is_taken(h)
  return h.out >= h.ph or (h.un ~= '' and not (h.un == '0' and delay_of(h) == 0))
end

-- A slot was granted: must the next one wait for the report of its start? '0' stays until all slots are back: if a
-- delay comes into force meanwhile, it counts from the last of their starts.
local function note_unreported(h, id, robots)
  if h.ph <= 1 or h.un == '0' then return end
  h.un = (robots or delay_of(h) > 0) and id or '0'
  touch(h)
end

-- A slot was returned or taken back.
local function note_returned(h, id)
  if h.un == id or ((h.un == '?' or h.un == '0') and h.out == 0) then
    h.un = ''
    touch(h)
  end
end

local function head_of(h)
  local d = delay_of(h)
  if d <= 0 then return 512 end
  return min(512, max(16, floor(60000 / d)))
end

local function place(h, lane, score)
  if h.la ~= lane then
    h.la = lane
    put(h, 'la', lane)
  end
  h.score = score
  if not h.moves then
    h.moves = true
    moved[#moved + 1] = h
  end
end

-- The same for browsers: in due:render, due:render:solo or ('') neither.
local function place_browsers(h, set, score)
  h.bset, h.bscore = set, score
  if not h.bmoves then
    h.bmoves = true
    browsers_moved[#browsers_moved + 1] = h
  end
end

-- The host has work for browsers only.
local function leave_due(h)
  if h.la ~= '' then place(h, '', 0) end
end

local function unschedule(h)
  leave_due(h)
  if h.bn > 0 then place_browsers(h, '', 0) end
end

local function browsers_ring(h) return call('LRANGE', P .. 'bring:' .. h.name, 0, -1) end

-- A page for a browser is listed. Without one a shift would have nothing to do, and a scan for more is running.
local function waits_for_browser(h)
  local keys = {}
  for i, c in ipairs(browsers_ring(h)) do keys[i] = P .. 'q:' .. h.name .. ':' .. c end
  return #keys > 0 and call('EXISTS', unpack(keys)) > 0
end

-- Puts a host into its due set, and into that of browsers; into none while its slots are taken or no queue needs it.
local function schedule(h, at_least, lane)
  if not h.known or is_taken(h) then return unschedule(h) end
  local at, waits = max(eligible(h), at_least or 0), h.bn > 0 and waits_for_browser(h)
  if h.rn == 0 then
    leave_due(h)
  else
    place(h, lane or ((h.sl or h.hi == 'slow') and 'slow') or (h.hi and 'high') or 'batch',
      (waits and not h.bt) and at + ALTERNATION_MS or at)
  end
  if h.bn > 0 then place_browsers(h, waits and 'render' or '', (h.rn > 0 and h.bt) and at + ALTERNATION_MS or at) end
end

local function flush_browsers()
  for _, set in ipairs({ 'render', 'render:solo' }) do
    local gone, come = {}, {}
    for _, h in ipairs(browsers_moved) do
      h.bmoves = nil
      if h.bset == set then
        come[#come + 1] = str(h.bscore)
        come[#come + 1] = h.name
      else
        gone[#gone + 1] = h.name
      end
    end
    many('ZREM', P .. 'due:' .. set, gone)
    many('ZADD', P .. 'due:' .. set, come)
  end
  browsers_moved = {}
end

local function flush_due()
  if #browsers_moved > 0 then flush_browsers() end
  local gone, come = {}, {}
  for i = 1, #moved do
    local h = moved[i]
    h.moves = nil
    if h.was ~= '' and h.was ~= h.la then
      local list = gone[h.was] or {}
      gone[h.was] = list
      list[#list + 1] = h.name
    end
    if h.la ~= '' then
      local list = come[h.la] or {}
      come[h.la] = list
      local n = #list
      list[n + 1], list[n + 2] = str(h.score), h.name
    end
    h.was = h.la
  end
  moved = {}
  for lane, list in pairs(gone) do many('ZREM', P .. 'due:' .. lane, list) end
  for lane, list in pairs(come) do many('ZADD', P .. 'due:' .. lane, list) end
end

local function flush_crawls()
  for c, n in pairs(busy) do
    if n ~= 0 and crawl(c) then
      local rest = call('HINCRBY', P .. 'crawl:' .. c, 'busy', n)
      if rest <= 0 and crawls[c].st == 'gone' then call('UNLINK', P .. 'crawl:' .. c) end
    end
  end
  busy = {}
  for _, r in pairs(crawls) do
    if r and r.spent then
      call('HSET', P .. 'crawl:' .. r.n, 'left', r.left)
      r.spent = nil
    end
  end
end

local function finish()
  flush_due()
  flush_crawls()
  for i = 1, #changed do
    local h = changed[i]
    if h.touched then
      local v = {}
      for j = 1, #PACKED do v[j] = h[PACKED[j]] end
      put(h, 'v', cmsgpack.pack(v))
    end
    call('HSET', unpack(h.set))
    h.set, h.touched = nil, nil
    -- No queue needs the host: its times are kept here while they are in the future; the store has them too.
    if h.rn + h.bn == 0 and h.out == 0 then call('PEXPIREAT', h.key, max(now, eligible(h)) + FADE - skew) end
  end
  changed = {}
end

-- There may be work sooner than the dispatcher expects.
local function wake_beat()
  if call('LLEN', P .. 'wake') == 0 then call('LPUSH', P .. 'wake', '1') end
end

local function ring_of(h)
  if h.rn == 1 and h.r1 ~= '' then return { h.r1 } end
  return call('LRANGE', P .. 'ring:' .. h.name, 0, -1)
end

-- The rings' part of delay, per_host and lane; recomputed when a crawl joins, leaves or changes its options.
local function weigh(h)
  local ring, browsers = call('LRANGE', P .. 'ring:' .. h.name, 0, -1), h.bn > 0 and browsers_ring(h) or {}
  local cd, ph, hi, slow = 0, 64, false, #ring > 0
  for _, c in ipairs(browsers) do
    local r = crawl(c)
    if r then cd, ph = max(cd, r.dl), min(ph, r.ph) end
  end
  for _, c in ipairs(ring) do
    local r = crawl(c)
    if r then
      cd, ph = max(cd, r.dl), min(ph, r.ph)
      hi, slow = hi or r.lane == 'high', slow and r.lane == 'slow'
    end
  end
  if #ring + #browsers == 0 then ph = h.oph > 0 and h.oph or 1 elseif h.oph > 0 then ph = min(ph, h.oph) end
  if h.ph == 1 and ph > 1 and h.out > 0 and h.un == '' then h.un = '?' end
  h.cd, h.ph, h.rn, h.r1, h.hi = cd, ph, #ring, #ring == 1 and ring[1] or '', slow and 'slow' or hi
  h.bn = #browsers
  touch(h)
end

local function in_ring(h, c)
  if byte(c, -1) == 98 then return h.bn > 0 and call('HEXISTS', h.key, 'q:' .. c) == 1 end
  if h.r1 ~= '' or h.rn == 0 then return h.r1 == c end
  return call('HEXISTS', h.key, 'q:' .. c) == 1
end

-- False if the lane has all the queues it may load: the queue then waits in the store. Both queues of a crawl on a
-- host count as one.
local function join_ring(h, c, cap)
  if in_ring(h, c) then return true end
  local r, counted = crawl(c), in_ring(h, sibling_of(c))
  if not counted and tonumber(call('HGET', P .. 'play', r.lane) or 0) >= cap then return false end
  if is_browsers(c) then
    call('RPUSH', P .. 'bring:' .. h.name, c)
    call('HINCRBY', P .. 'play', 'render', 1)
    h.bn = h.bn + 1
  else
    call('RPUSH', P .. 'ring:' .. h.name, c)
  end
  call('HSET', h.key, 'q:' .. c, r.lane)
  call('PERSIST', h.key)
  call('HINCRBY', P .. 'crawl:' .. r.n, 'pairs', 1)
  if not counted then call('HINCRBY', P .. 'play', r.lane, 1) end
  weigh(h)
  return true
end

-- Removes a queue from the host. Leased and delayed entries stay counted in x until they end.
local function drop(h, c)
  local lane = call('HGET', h.key, 'q:' .. c)
  if not lane then return end
  call('LREM', P .. (is_browsers(c) and 'bring:' or 'ring:') .. h.name, 0, c)
  call('UNLINK', P .. 'q:' .. h.name .. ':' .. c)
  call('HDEL', h.key, 'q:' .. c, 'b:' .. c, 'l:' .. c)
  -- It cannot be rescanned while entries are leased or delayed. If it comes back (a crawl that was paused), rows behind
  -- the cursor were never listed in this epoch and need not wait. The rescan finds the others.
  if call('HEXISTS', h.key, 'x:' .. c) == 0 then call('HDEL', h.key, 'k:' .. c) end
  call('ZREM', P .. 'scans', h.name .. US .. c)
  if crawl(c) then call('HINCRBY', P .. 'crawl:' .. number_of(c), 'pairs', -1) end
  if not in_ring(h, sibling_of(c)) then call('HINCRBY', P .. 'play', lane, -1) end
  if is_browsers(c) then call('HINCRBY', P .. 'play', 'render', -1) end
  weigh(h)
  if h.rn == 0 then leave_due(h) end
  if is_browsers(c) and h.bn == 0 then place_browsers(h, '', 0) end
end

-- Scans that the caller must carry out: "host crawl token cursor head", cursor '-' for a rescan from the start.
local scans = {}
local function want_scan(h, c, cursor)
  local lock = call('HGET', h.key, 'l:' .. c)
  if lock and tonumber(lock) > now then return end
  local expiry = now + SCAN_LOCK
  local token = expiry .. '.' .. call('HINCRBY', KEYS[1], 'scan', 1)
  call('HSET', h.key, 'l:' .. c, token)
  call('ZADD', P .. 'scans', expiry, h.name .. US .. c)
  scans[#scans + 1] = table.concat({ h.name, c, token, cursor, head_of(h) }, US)
end

-- A queue with nothing listed: refill behind the cursor; rescan if nothing of it is leased or delayed; else wait.
local function request_refill(h, c)
  local v = call('HMGET', h.key, 'b:' .. c, 'k:' .. c, 'x:' .. c)
  if v[1] and v[2] then
    want_scan(h, c, v[2])
  elseif (tonumber(v[3]) or 0) <= 0 then
    want_scan(h, c, '-')
  end
end

-- One fewer of the queue is delayed or leased; a rescan may wait for the last one.
local function less_busy(name, c)
  local n = byte(c, -1) == 98 and sub(c, 1, -2) or c
  busy[n] = (busy[n] or 0) - 1
  local key = P .. 'host:' .. name
  if call('HINCRBY', key, 'x:' .. c, '-1') > 0 then return end
  call('HDEL', key, 'x:' .. c)
  local h = host(name)
  if not in_ring(h, c) then return call('HDEL', key, 'k:' .. c) end
  if call('EXISTS', P .. 'q:' .. name .. ':' .. c) == 0 then request_refill(h, c) end
end

local function more_busy(name, c)
  local n = number_of(c)
  busy[n] = (busy[n] or 0) + 1
  call('HINCRBY', P .. 'host:' .. name, 'x:' .. c, 1)
end

-- Budget that was granted and not used; a host that was skipped meanwhile returns to its due set.
local function give_back(c)
  local r = crawl(c)
  if not r or r.left < 0 then return end
  r.left, r.spent = r.left + 1, true
  while true do
    local name = call('SPOP', P .. 'starved:' .. r.n)
    if not name then return end
    local h = host(name)
    for _, queue in ipairs({ r.n, h.bn > 0 and r.n .. 'b' or nil }) do
      if in_ring(h, queue) and call('EXISTS', P .. 'q:' .. name .. ':' .. queue) == 1 then return schedule(h) end
    end
  end
end

-- "s" https://<host>, "h" http://<host>, else the origin as written in the entry.
local function origin_of(rest, name)
  if byte(rest, 1) == 47 then return 's' end
  if sub(rest, 1, 6) == 'http:/' and byte(rest, 7) ~= 47 then return 'h' end
  local origin = match(rest, '^(%a+://[^/]*)')
  if origin == 'http://' .. name then return 'h' end
  if origin == 'https://' .. name then return 's' end
  return origin
end

-- A robots entry that a lease made itself is not listed: it is offered again.
local function robots_again(h, entry)
  local head, rest = match(entry, '^(%S+) (.*)$')
  local crashes, alone = match(head, '^r0,0,(%d+),(%d+)$')
  local field = 'r:' .. origin_of(rest, h.name)
  if crashes then call('HSET', h.key, field, 'c' .. crashes .. ',' .. alone) else call('HDEL', h.key, field) end
end
