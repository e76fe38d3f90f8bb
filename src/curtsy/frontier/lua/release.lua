-- release.lua: part of lease.lua and settle.lua, behind the preamble.
--
-- A release is one string: id mode started_ago ended_ago broken block adaptive failures slow wait, split by spaces.
--   id           of the slot; '0@host' for a slot of an earlier epoch: only times and effects count
--   mode         k  the URL lease stays until its commit;  b  the URL goes back to the head of its list;
--                h  the slot stays too: only the times are taken (robots.txt, until its rules are committed)
--   started_ago  ms since bytes were about to leave; '-' if nothing was sent
--   ended_ago    ms since the response ended
--   broken       1  we broke the transfer off: the delay runs from its end
--   block        ms from now during which the host is not asked
--   adaptive     new adaptive delay in ms, '-' to leave it
--   failures     consecutive failures of the host, '-' to leave them
--   slow         1 | 0 | '-'
--   wait         ms from now before which the host is not offered again
-- Answers "start end next" in ms, or '-' where nothing was sent.
local function apply_effect(h, block, adaptive, failures, slow)
  if block > 0 and now + block > h.bl then
    h.bl = now + block
    redis.call('HSET', h.key, 'bl', h.bl)
  end
  if adaptive ~= '-' then
    h.ad = tonumber(adaptive)
    redis.call('HSET', h.key, 'ad', h.ad)
  end
  if failures ~= '-' then
    h.fl = failures
    redis.call('HSET', h.key, 'fl', failures)
  end
  if slow ~= '-' and (slow == '1') ~= h.sl then
    h.sl = slow == '1'
    redis.call('HSET', h.key, 'sl', slow)
  end
end

local function put_url_back(id)
  local lease = redis.call('HGET', P .. 'ld', id)
  if not lease or redis.call('ZREM', P .. 'leases', id) == 0 then return end
  redis.call('HDEL', P .. 'ld', id)
  redis.call('HDEL', P .. 'lt', id)
  local f = split(lease)
  local name, c, entry = f[1], f[2], f[#f]
  local h = host(name)
  if string.byte(entry, 1) == 114 and f[8] == '1' then
    redis.call('HDEL', h.key, 'r:' .. origin_of(string.match(entry, ' (.*)$'), name))
  elseif in_ring(h, c) then
    redis.call('LPUSH', P .. 'q:' .. name .. ':' .. c, entry)
  end
  if string.byte(entry, 1) == 112 then give_back(c) end
  less_busy(name, h, c)
end

local function release(text)
  local id, mode, started, ended, broken, block, adaptive, failures, slow, wait =
    string.match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  local slot = redis.call('HGET', P .. 'sd', id)
  local lease = not slot and redis.call('HGET', P .. 'ld', id)
  local name = slot and string.match(slot, '^(%S+)') or (lease and split(lease)[1]) or string.match(id, '^0@(.*)$')
  local start_ms, end_ms, answer
  if started ~= '-' then
    start_ms, end_ms = now - floor(tonumber(started)), now - floor(tonumber(ended))
    if redis.call('HEXISTS', P .. 'ld', id) == 1 then redis.call('HSET', P .. 'lt', id, start_ms .. ' ' .. end_ms) end
  end
  if not name then return start_ms and (start_ms .. ' ' .. end_ms .. ' 0') or '-' end
  local h = host(name)
  if start_ms then
    local base = broken == '1' and end_ms or start_ms
    if base > h.ls then
      h.ls = base
      redis.call('HSET', h.key, 'ls', base)
    end
  end
  if mode == 'h' then return start_ms and (start_ms .. ' ' .. end_ms .. ' ' .. eligible(h)) or '-' end
  apply_effect(h, tonumber(block), adaptive, failures, slow)
  if redis.call('ZREM', P .. 'slots', id) == 1 then
    redis.call('HDEL', P .. 'sd', id)
    h.out, h.un = max(0, h.out - 1), 0
    redis.call('HSET', h.key, 'out', h.out, 'un', 0)
  end
  if mode == 'b' then put_url_back(id) end
  bench(name, h, now + tonumber(wait))
  answer = start_ms and (start_ms .. ' ' .. end_ms .. ' ' .. eligible(h)) or '-'
  return answer
end

-- per_host > 1: the next slot of the host may be given out a delay after this one's bytes left.
local function report_start(text)
  local id, ago = string.match(text, '^(%S+) (%S+)$')
  local slot = redis.call('HGET', P .. 'sd', id)
  if not slot then return end
  local name = string.match(slot, '^(%S+)')
  local h = host(name)
  h.ls, h.un = max(h.ls, now - floor(tonumber(ago))), 0
  redis.call('HSET', h.key, 'ls', h.ls, 'un', 0)
  bench(name, h)
end
