-- settle.lua: applies a commit to the frontier: robots rules, held slots, URL leases.
--
-- ARGV  2 number of rules, then each "host 0x1f origin 0x1f until 0x1f fetched 0x1f delay" (origin as in the preamble;
--         until 'p<ms>' while a redirect of robots.txt is followed; delay in ms, '-' to keep it)
--       then the number of releases, then each (release.lua): robots entries keep their slot until then
--       then the number of settled leases, then each "id 0x1f action 0x1f used 0x1f at 0x1f entry"
--         action d  settled finally;  r  again at `at` ms, as `entry`; if that belongs to the crawl's other queue (a
-- page
--                   that needs a browser), a scan finds it there
--         used   1  it counts against max_pages
-- Returns { now, releases, scans, crawls with no queue left and nothing in flight }
local at = 2
local rules = tonumber(ARGV[at])
for i = 1, rules do
  local f = split(ARGV[at + i])
  local h = host(f[1])
  -- A host that is not in the frontier gets its rules from the store when it is introduced.
  if h.known then
    put(h, 'r:' .. f[2], byte(f[3], 1) == 112 and f[3] or (f[3] .. ':' .. f[4]))
    if f[5] ~= '-' then
      h.rd = tonumber(f[5])
      touch(h)
    end
    schedule(h)
  end
end
at = at + 1 + rules

local released = release_all(at, tonumber(ARGV[at]))
at = at + 1 + #released

-- The store has a row for that queue that may be before its cursor: the queue is rescanned now, or later if some of it
-- is leased or delayed. A scan that is running may have missed the row.
local function look_for_row(h, c)
  join_ring(h, c, math.huge)
  local lock = call('HGET', h.key, 'l:' .. c)
  if lock and tonumber(lock) > now then return call('HSET', h.key, 'b:' .. c, 2) end
  if call('EXISTS', P .. 'q:' .. h.name .. ':' .. c) == 0 then request_refill(h, c) end
end

local touched, ids, n = {}, {}, tonumber(ARGV[at])
for i = 1, n do ids[i] = match(ARGV[at + i], '^%d+') end
local standing = n > 0 and call('HMGET', P .. 'ld', unpack(ids))
local ended, fields = {}, {}
for i = 1, n do
  local id, lease = ids[i], standing[i]
  if lease and not ended[id] then
    ended[id] = true
    fields[#fields + 1] = id
    fields[#fields + 1] = 't' .. id
    local action, used, when, again = match(ARGV[at + i], '^%d+\31(%a)\31(%d)\31(%d+)\31(.*)$')
    local name, c = match(lease, '^([^\31]+)\31([^\31]+)')
    local r = crawl(c)
    if used ~= '1' and r and r.left >= 0 then
      local g = split(lease)
      if is_page(g[#g]) then give_back(c) end
    end
    local again_here = action == 'r' and r and in_ring(host(name), c)
    if again_here and (byte(again, 1) == 98) ~= is_browsers(c) then
      if r.st == 'running' then look_for_row(host(name), sibling_of(c)) end
      again_here = false
    end
    -- A retry replaces the lease in the count of leased and delayed entries.
    if not again_here or call('ZADD', P .. 'delayed', 'NX', when, name .. US .. c .. US .. again) == 0 then
      less_busy(name, c)
    end
    touched[number_of(c)] = true
  end
end
if #fields > 0 then
  many('ZREM', P .. 'leases', ids)
  many('HDEL', P .. 'ld', fields)
end
finish()

local idle = {}
for c in pairs(touched) do
  local v = call('HMGET', P .. 'crawl:' .. c, 'pairs', 'busy', 'left')
  if (tonumber(v[2]) or 0) <= 0 and ((tonumber(v[1]) or 0) <= 0 or v[3] == '0') then idle[#idle + 1] = c end
end
return { tostring(now), released, scans, idle }
