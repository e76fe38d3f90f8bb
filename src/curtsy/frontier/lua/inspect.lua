-- inspect.lua: the state of a host, and of one of its URLs. Read only.
--
-- ARGV  2 host   3 queue   4 the URL as an entry writes it (entry.py); both '' for the host alone
-- Returns { now, due or '', blocked until, slots in use, delay, owner, loaded, backlog, delayed + leased, scan,
--           starved,
--           listed, listed before it or '', lease or '', its expiry or '', its slot or '', its times or '' }
local name, c, rest = ARGV[2], ARGV[3], ARGV[4]
local h = host(name)
local v = call('HMGET', h.key, 'q:' .. c, 'b:' .. c, 'x:' .. c, 'l:' .. c)
local due = h.la ~= '' and call('ZSCORE', P .. 'due:' .. h.la, name)
if is_browsers(c) or not due then due = call('ZSCORE', P .. 'due:render', name) or call('ZSCORE', P .. 'due:render:solo', name) end

local function is_it(entry) return rest ~= '' and match(entry, '^%S+ ([^\t]*)') == rest end

local list, before = call('LRANGE', P .. 'q:' .. name .. ':' .. c, 0, -1), ''
for i = 1, #list do
  if is_it(list[i]) then
    before = i - 1
    break
  end
end

-- The number of leases is bounded by the requests in flight of all processes.
local id, lease = '', ''
if tonumber(v[3] or 0) > 0 and before == '' then
  local granted = call('HGETALL', P .. 'ld')
  for i = 1, #granted, 2 do
    if match(granted[i], '^%d+$') then
      local f = split(granted[i + 1])
      if f[1] == name and f[2] == c and is_it(f[#f]) then id, lease = granted[i], granted[i + 1] end
    end
  end
end
local out = id ~= '' and call('HMGET', P .. 'ld', 's' .. id, 't' .. id) or {}

return {
  tostring(now), due or '', str(h.bl), str(h.out), str(delay_of(h)), h.ow, v[1] and 1 or 0, v[2] and 1 or 0,
  tonumber(v[3] or 0), (v[4] and tonumber(v[4]) > now) and 1 or 0, call('SISMEMBER', P .. 'starved:' .. number_of(c), name), #list,
  before, lease, id ~= '' and (call('ZSCORE', P .. 'leases', id) or '') or '', out[1] or '', out[2] or '',
}
