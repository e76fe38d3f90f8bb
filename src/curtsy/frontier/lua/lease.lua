-- lease.lua: returns slots, then takes slots of due hosts, each with the URL that it is for.
--
-- ARGV  2 owner   3 URL lease in ms   4 solo (1: nothing is in flight here, offer one suspect)
--       5 number of releases, then each (release.lua)
--       then the number of start reports, then each "id ago"
--       then the number of lanes, then for each: lane, how many, slot in ms
--       then the last `halt` that the caller knows, then how many URLs a slot may be leased for (1: no runs), and for
--       about how many all slots of the call together
-- Returns { now, releases, leases, scans, next due or '', suspects due, halt, crawls paused or ended since then,
--           suspects due that wait for a browser, for how many URLs a slot was leased at most }
--   a lease: id follows host queue version delay per_host robots_ms solo own_robots lane failures adaptive entry, split
--            by 0x1f; `follows` is the URL before it in its run, whose slot passes to it; 0: it has a slot
--
-- Without a delay, one call grants all free slots of a host that the caller has room for, and each slot for a run of
-- URLs: they are requested one after another, and each has its own URL lease.
local owner, lease_ms, solo = ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local at = 5

local released = release_all(at, tonumber(ARGV[at]))
at = at + 1 + #released
local reports = tonumber(ARGV[at])
for i = 1, reports do report_start(ARGV[at + i]) end
at = at + 1 + reports

list_due_retries()

-- entries of one list that a lease checks for one whose origin's rules are known
local LOOKED_AT = 16
local ctr = tonumber(held[4]) or 0
local granted, slots, leases, ld = {}, {}, {}, {}
local lanes = tonumber(ARGV[at])
local longest_run, together = tonumber(ARGV[at + 2 + lanes * 3]), tonumber(ARGV[at + 3 + lanes * 3])
local run, used_run = longest_run, 1

local owners = {}
local function alive(id)
  if owners[id] == nil then owners[id] = call('EXISTS', P .. 'owner:' .. id) == 1 end
  return owners[id]
end

local function grant_url(h, c, r, entry, robots_ms, own_robots, lane, follows)
  ctr = ctr + 1
  local n, m, id = #leases, #ld, string.format('%d', ctr)
  local lease = table.concat({ h.name, c, r.ver, str(delay_of(h)), str(h.ph), robots_ms, solo and '1' or '0', own_robots,
    lane, str(h.fl), str(h.ad), entry }, US)
  leases[n + 1], leases[n + 2] = str(now + lease_ms), id
  ld[m + 1], ld[m + 2] = id, lease
  busy[r.n] = (busy[r.n] or 0) + 1
  if r.left > 0 and is_page(entry) then r.left, r.spent = r.left - 1, true end
  granted[#granted + 1] = id .. US .. follows .. US .. lease
  return id
end

-- `more`: further entries of the run.
local function grant(h, c, r, entry, robots_ms, own_robots, x, lane, slot_ms, more)
  local id = grant_url(h, c, r, entry, robots_ms, own_robots, lane, '0')
  local n, m, before = #slots, #ld, id
  slots[n + 1], slots[n + 2] = str(now + slot_ms), id
  ld[m + 1], ld[m + 2] = 's' .. id, h.name .. ' ' .. str(now) .. ' ' .. str(delay_of(h)) .. ' ' .. str(h.ph) .. ' ' .. r.n
  for i = 1, #more do before = grant_url(h, c, r, more[i], robots_ms, '0', lane, before) end
  h.out = h.out + 1
  put(h, 'out', str(h.out))
  note_unreported(h, id, own_robots == '1')
  -- The same call may grant another slot of this host, and reads this first.
  if is_taken(h) then put(h, 'x:' .. c, str(x + 1 + #more)) else call('HSET', h.key, 'x:' .. c, str(x + 1 + #more)) end
  if h.ow ~= owner then
    h.ow = owner
    put(h, 'ow', owner)
  end
  if h.bn > 0 and h.bt ~= is_browsers(c) then
    h.bt = not h.bt
    touch(h)
  end
  local visit = h.bn > 0 and is_browsers(c)
  if (visit and h.bn or h.rn) > 1 then
    local ring = P .. (visit and 'bring:' or 'ring:') .. h.name
    call('LREM', ring, 1, c)
    call('RPUSH', ring, c)
    h.tn = h.tn + 1
    touch(h)
  end
  schedule(h)
end

-- Crawls alternate; those of a better lane go first in 4 of 5 slots.
local function turns(h, browsers)
  local ring = browsers and browsers_ring(h) or ring_of(h)
  if #ring < 2 or (h.hi ~= true and not browsers) then return ring end
  local first, later = {}, {}
  for _, c in ipairs(ring) do
    local r = crawl(c)
    local list = (r and r.lane == 'high') and first or later
    list[#list + 1] = c
  end
  if h.tn % 5 == 4 then first, later = later, first end
  for _, c in ipairs(later) do first[#first + 1] = c end
  return first
end

-- Returns the robots entry that an origin needs first; or nil and when its rules were fetched; or nil, nil and how
-- long to wait for them.
local function robots_first(known, origin)
  local letter = known and byte(known, 1)
  if letter == 112 and tonumber(sub(known, 2)) > now then return nil, nil, tonumber(sub(known, 2)) end
  local until_ms, fetched = match(known or '', '^(%d+):(%d+)$')
  if until_ms and tonumber(until_ms) > now then return nil, fetched end
  local path = (origin == 's' and '' or (origin == 'h' and 'http:' or origin)) .. '/robots.txt'
  if letter == 99 then return 'r0,0,' .. sub(known, 2) .. ' ' .. path end
  return 'r0 ' .. path
end

local function is_suspect(entry) return tonumber(match(entry, '^%a%d+,%d+,(%d+)') or 0) >= 2 end

-- Takes further entries for a run from the queue: plain pages of the same origin that need nothing else first. Only if
-- no other crawl waits for the host: crawls that share it alternate. The URLs of a host are shared among its slots.
local function run_of(h, r, q, entry, origin, lane)
  if run < 2 or solo or lane == 'render' or delay_of(h) > 0 or h.rn ~= 1 or h.bn > 0 then return {} end
  if byte(entry, 1) ~= 112 then return {} end
  local most = min(run - 1, floor(call('LLEN', q) / h.ph))
  if r.left >= 0 then most = min(most, r.left - 1) end
  if most < 1 then return {} end
  local more, found = {}, call('LPOP', q, most)
  for i = 1, #found do
    local one = found[i]
    if byte(one, 1) ~= 112 or is_suspect(one) or origin_of(match(one, ' ([^\t]*)'), h.name) ~= origin then
      local back = {}
      for j = #found, i, -1 do back[#back + 1] = found[j] end
      call('LPUSH', q, unpack(back))
      break
    end
    more[i] = one
  end
  return more
end

-- Offers one entry. Returns true if granted; false and a time if it went to the end of the list, because its origin's
-- rules are unknown until then; else nil.
local function offer_entry(h, c, r, q, entry, lane, slot_ms)
  if r.left == 0 and is_page(entry) then
    call('LPUSH', q, entry)
    call('SADD', P .. 'starved:' .. r.n, h.name)
    return
  end
  local origin = byte(entry, 1) ~= 114 and origin_of(match(entry, ' ([^\t]*)'), h.name)
  local v = call('HMGET', h.key, 'x:' .. c, 'b:' .. c, 'k:' .. c, 'r:' .. (origin or '-'))
  local x, ask, fetched, wait = tonumber(v[1]) or 0, nil, 0, nil
  if origin then ask, fetched, wait = robots_first(v[4], origin) end
  if wait then
    call('RPUSH', q, entry)
    return false, wait
  end
  if is_suspect(ask or entry) and not solo then
    call('LPUSH', q, entry)
    if is_browsers(c) then place_browsers(h, 'render:solo', eligible(h)) else schedule(h, 0, 'solo') end
    return
  end
  if ask then
    call('LPUSH', q, entry)
    call('HSET', h.key, 'r:' .. origin, 'p' .. (now + slot_ms + 1000))
    grant(h, c, r, ask, 0, '1', x, lane, slot_ms, {})
    return true
  end
  grant(h, c, r, entry, fetched, '0', x, lane, slot_ms, run_of(h, r, q, entry, origin, lane))
  if v[2] and v[3] and call('LLEN', q) * 2 < head_of(h) then want_scan(h, c, v[3]) end
  return true
end

-- Offers the head of one crawl's queue; an origin without rules does not delay other origins of its host.
-- Returns true if granted, else a time before which to skip it (or nil).
local function offer(h, c, lane, slot_ms)
  local r = crawl(c)
  if not r or r.st ~= 'running' then return drop(h, c) end
  local q = P .. 'q:' .. h.name .. ':' .. c
  local left, first = 1, nil
  while left > 0 do
    local entry = call('LPOP', q)
    if not entry then return request_refill(h, c) end
    local answer, wait = offer_entry(h, c, r, q, entry, lane, slot_ms)
    if answer ~= false then return answer end
    left = first and left - 1 or min(LOOKED_AT, call('LLEN', q)) - 1
    first = min(first or wait, wait)
  end
  return first
end

-- Delay and per_host of the crawls of a ring, combined with those of others.
local function care(ring, cd, ph)
  for _, c in ipairs(ring) do
    local r = crawl(c)
    if r then cd, ph = max(cd, r.dl), min(ph, r.ph) end
  end
  return cd, ph
end

-- Offers what waits for a browser; the same as `serve` for the other lanes.
local function serve_browser(h, lane, slot_ms, ring)
  local wait
  for _, c in ipairs(ring) do
    local answer = offer(h, c, lane, slot_ms)
    if answer == true then return true end
    if h.bset == 'render:solo' and lane ~= 'render:solo' then return end
    if answer then wait = min(wait or answer, answer) end
  end
  place_browsers(h, wait and 'render' or '', wait or 0)
end

local function serve(h, lane, slot_ms)
  local browsers = lane == 'render' or lane == 'render:solo'
  if browsers then h.bset = lane else h.la, h.was = lane, lane end
  if not h.known or is_taken(h) then return unschedule(h) end
  local crawls_here = turns(h, browsers)
  local cd, ph = care(crawls_here, 0, 64)
  if browsers then
    cd, ph = care(ring_of(h), cd, ph)
  elseif h.bn > 0 then
    cd, ph = care(browsers_ring(h), cd, ph)
  end
  if h.oph > 0 then ph = min(ph, h.oph) end
  -- A crawl's delay or per_host may have changed.
  if cd ~= h.cd or ph ~= h.ph then weigh(h) end
  if eligible(h) > now then return schedule(h, 0, not browsers and lane or nil) end
  if browsers then return serve_browser(h, lane, slot_ms, crawls_here) end
  local wait
  for _, c in ipairs(crawls_here) do
    local answer = offer(h, c, lane, slot_ms)
    if answer == true then return true end
    if h.la == 'solo' and lane ~= 'solo' then return end
    if answer then wait = min(wait or answer, answer) end
  end
  if wait then schedule(h, wait, lane) else leave_due(h) end
end

-- Affinity only orders hosts: own hosts first, then free ones, then those that their owner does not lease.
-- Returns the hosts, and when the first skipped one may be taken.
local function candidates(lane, want)
  local own, free, others, later = {}, {}, {}, nil
  local due = call('ZRANGEBYSCORE', P .. 'due:' .. lane, '-inf', now, 'WITHSCORES', 'LIMIT', 0, want * 3)
  for i = 1, #due, 2 do
    local h = host(due[i])
    if h.ow == owner then
      own[#own + 1] = h
      if #own >= want then break end
    elseif h.ow == '' or not alive(h.ow) then
      free[#free + 1] = h
    elseif tonumber(due[i + 1]) + 50 <= now then
      others[#others + 1] = h
    else
      later = min(later or now + 50, tonumber(due[i + 1]) + 50)
    end
  end
  for _, h in ipairs(free) do own[#own + 1] = h end
  for _, h in ipairs(others) do own[#own + 1] = h end
  return own, later
end

local earliest, browsers
local function sooner(score)
  if score then earliest = min(earliest or tonumber(score), tonumber(score)) end
end
for i = 0, lanes - 1 do
  local lane, want, slot_ms = ARGV[at + 1 + i * 3], tonumber(ARGV[at + 2 + i * 3]), tonumber(ARGV[at + 3 + i * 3])
  browsers = browsers or lane == 'render'
  local from = solo and (lane == 'render' and 'render:solo' or 'solo') or lane
  if solo then want = min(want, 1 - #granted) end
  local got = 0
  if want > 0 then
    local found, later = candidates(from, want)
    -- URLs that the caller cannot request soon would only keep other processes from these hosts.
    local free = 0
    for _, h in ipairs(found) do free = free + max(1, h.ph - h.out) end
    if free > 0 then
      run = max(1, min(longest_run, floor((together - #granted) / min(free, want))))
      used_run = max(used_run, run)
    end
    -- Every host gets one slot before any gets another one.
    while #found > 0 and got < want do
      local again = {}
      for _, h in ipairs(found) do
        if got >= want then break end
        if serve(h, from, slot_ms) then
          got = got + 1
          if h.ph > 1 and h.la == from and not is_taken(h) and delay_of(h) == 0 then again[#again + 1] = h end
        end
      end
      found = again
    end
    flush_due()
    if got < want then
      sooner(later)
      -- Hosts that are due but were not checked yet are worth another call; skipped ones are `later`.
      local rest = later and '(' .. now or '-inf'
      sooner(call('ZRANGEBYSCORE', P .. 'due:' .. lane, rest, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
    end
  end
end
sooner(call('ZRANGE', P .. 'delayed', 0, 0, 'WITHSCORES')[2])

if #granted > 0 then
  call('HSET', KEYS[1], 'ctr', ctr)
  many('ZADD', P .. 'slots', slots)
  many('ZADD', P .. 'leases', leases)
  many('HSET', P .. 'ld', ld)
end
finish()
local suspects = call('ZCOUNT', P .. 'due:solo', '-inf', now)
local browsers_suspects = browsers and call('ZCOUNT', P .. 'due:render:solo', '-inf', now) or 0
local halt, heard, halted = tonumber(held[5]) or 0, tonumber(ARGV[at + 1 + lanes * 3]), {}
if halt > heard then halted = call('ZRANGEBYSCORE', P .. 'halted', '(' .. heard, '+inf') end
return { tostring(now), released, granted, scans, earliest and tostring(earliest) or '', suspects, halt, halted,
  browsers_suspects, used_run }
