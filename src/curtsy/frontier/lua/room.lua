-- room.lua: lanes with queues that wait in the store. If there is room, the caller loads them. If not, queues of
-- hosts that must not receive a request for long make room: they wait in the store instead.
--
-- ARGV  2 queues that may be loaded per lane in this shard   3 ms: a host whose next request is later than this makes room
--       4 at most this many make room   5 ms for which the caller claims a lane
-- Returns { now, lanes "lane room mark", parked "crawl until host" }
local cap, far, limit, turn = tonumber(ARGV[2]), now + tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local lanes, parked = {}, {}

local function park(lane)
  for _, due in ipairs(lane == 'slow' and { 'slow', 'render' } or { lane, 'slow', 'render' }) do
    local late = call('ZREVRANGEBYSCORE', P .. 'due:' .. due, '+inf', far, 'WITHSCORES', 'LIMIT', 0, limit)
    for i = 1, #late, 2 do
      local h = host(late[i])
      for _, queue in ipairs(h.out == 0 and (due == 'render' and browsers_ring(h) or ring_of(h)) or {}) do
        local c = number_of(queue)
        local r = crawl(c)
        if r and r.lane == lane then
          drop(h, c)
          if h.bn > 0 then drop(h, c .. 'b') end
          parked[#parked + 1] = c .. ' ' .. str(tonumber(late[i + 1])) .. ' ' .. h.name
        end
      end
    end
  end
end

for _, lane in ipairs({ 'high', 'batch', 'slow' }) do
  local v = call('HMGET', P .. 'play', lane, 'w:' .. lane, 'l:' .. lane)
  if v[2] and (tonumber(v[3]) or 0) <= now then
    local room = cap - (tonumber(v[1]) or 0)
    if room <= 0 then
      park(lane)
    else
      call('HSET', P .. 'play', 'l:' .. lane, now + turn)
      lanes[#lanes + 1] = lane .. ' ' .. room .. ' ' .. v[2]
    end
  end
end
finish()
return { tostring(now), lanes, parked }
