-- release.lua: part of lease.lua and settle.lua, after the preamble.
--
-- A release is one string, split by spaces: id host mode started_ago ended_ago broken block adaptive failures slow
-- wait successor
--   id           of the slot; 0 for a slot of an earlier epoch: only its times and effects are used
--   mode         k  the URL lease stays until its commit;  b  the URL returns to the head of its list;
--                h  the slot stays too: only its times are used (robots.txt, until its rules are committed)
--   started_ago  ms since bytes were about to leave; '-' if nothing was sent
--   ended_ago    ms since the response ended
--   broken       1  we aborted the transfer: the delay counts from its end
--   block        ms from now during which the host receives no request
--   adaptive     new adaptive delay in ms, '-' to keep it
--   failures     consecutive failures of the host, '-' to keep them
--   slow         1 | 0 | '-'
--   wait         ms from now before which the host is not offered again
--   successor         id of the next URL of its run, which gets the slot with its expiry; 0: the slot is returned
-- Returns "start end next" in ms, or '-' where nothing was sent.
--
-- A start that is reported too late only makes the pause longer. Of several reports (of the start, or a release that is
-- repeated because its reply was lost) the earliest is used: the request log has the time that set the next slot.
--
-- Requests of a run follow each other on one slot. Each arrives with its own error, so a start is never before the end
-- of the request before it.
local function apply_effect(h, block, adaptive, failures, slow)
  if block > 0 and now + block > h.bl then
    h.bl = now + block
    touch(h)
  end
  if adaptive ~= '-' and tonumber(adaptive) ~= h.ad then
    h.ad = tonumber(adaptive)
    touch(h)
  end
  if failures ~= '-' and (tonumber(failures) ~= h.fl or not h.known) then
    h.fl, h.met = tonumber(failures), true
    touch(h)
  end
  if slow ~= '-' and ((slow == '1') ~= h.sl or not h.known) then
    h.sl = slow == '1'
    touch(h)
  end
end

local function put_url_back(id)
  local lease = call('HGET', P .. 'ld', id)
  if not lease or call('ZREM', P .. 'leases', id) == 0 then return end
  call('HDEL', P .. 'ld', id, 't' .. id)
  local f = split(lease)
  local name, c, entry = f[1], f[2], f[#f]
  local h = host(name)
  if f[8] == '1' then
    robots_again(h, entry)
  elseif in_ring(h, c) then
    call('LPUSH', P .. 'q:' .. name .. ':' .. c, entry)
  end
  if is_page(entry) then give_back(c) end
  less_busy(name, c)
end

-- The slots of these ids: when each expires, `t<id>` and `s<id>`.
local function slots_of(ids)
  local slots, expiries, fields = {}, call('ZMSCORE', P .. 'slots', unpack(ids)), {}
  for i = 1, #ids do fields[2 * i - 1], fields[2 * i] = 't' .. ids[i], 's' .. ids[i] end
  local v = call('HMGET', P .. 'ld', unpack(fields))
  for i = 1, #ids do
    slots[ids[i]] = { expiry = expiries[i], told = v[2 * i - 1], text = v[2 * i], written = expiries[i] and true }
  end
  return slots
end

-- The slot passes to the next URL of its run, with its expiry. `end_ms` is nil if nothing was sent.
local function pass_on(slots, slot, successor, end_ms)
  local name, since, rest = match(slot.text, '^(%S+) (%S+) (%S+ %S+ %S+)')
  local next_slot = slots[successor] or {}
  next_slot.expiry, next_slot.text = slot.expiry, name .. ' ' .. (end_ms and str(end_ms) or since) .. ' ' .. rest .. ' r'
  slots[successor], slot.expiry = next_slot, nil
end

-- Writes which slots are in use now, without those that were returned or passed on.
local function write_slots(slots)
  local gone, fields, come, texts = {}, {}, {}, {}
  for id, slot in pairs(slots) do
    if slot.written and not slot.expiry then
      gone[#gone + 1], fields[#fields + 1] = id, 's' .. id
    elseif slot.expiry and not slot.written then
      come[#come + 1] = slot.expiry
      come[#come + 1] = id
      texts[#texts + 1] = 's' .. id
      texts[#texts + 1] = slot.text
    end
  end
  many('ZREM', P .. 'slots', gone)
  many('HDEL', P .. 'ld', fields)
  many('ZADD', P .. 'slots', come)
  many('HSET', P .. 'ld', texts)
end

local function release_all(at, n)
  local answers, ids = {}, {}
  if n == 0 then return answers end
  for i = 1, n do ids[i] = match(ARGV[at + i], '^%d+') end
  local slots, leased, times = slots_of(ids), call('ZMSCORE', P .. 'leases', unpack(ids)), {}
  for i = 1, n do
    local id, name, mode, started, ended, broken, block, adaptive, failures, slow, wait, successor =
      match(ARGV[at + i], '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
    local h, slot = host(name), slots[id]
    local start_ms, end_ms
    if started ~= '-' then
      start_ms, end_ms = now - tonumber(started), now - tonumber(ended)
      local since = slot.text and match(slot.text, '^%S+ (%d+) .* r$')
      if since then
        start_ms = max(start_ms, tonumber(since))
        end_ms = max(end_ms, start_ms)
      end
      if slot.told then
        local first, last = match(slot.told, '^(%S+) (%S+)$')
        start_ms, end_ms = min(start_ms, tonumber(first)), min(end_ms, tonumber(last) or end_ms)
      end
      if leased[i] then
        times[#times + 1] = 't' .. id
        times[#times + 1] = str(start_ms) .. ' ' .. str(end_ms)
      end
      local base = broken == '1' and end_ms or start_ms
      if base > h.ls then
        h.ls = base
        put(h, 'ls', str(base))
      end
      if h.un == id then
        h.un = ''
        touch(h)
      end
    end
    if mode ~= 'h' then
      apply_effect(h, tonumber(block), adaptive, failures, slow)
      if slot.expiry and successor ~= '0' then
        pass_on(slots, slot, successor, end_ms)
      elseif slot.expiry then
        slot.expiry = nil
        h.out = max(0, h.out - 1)
        put(h, 'out', str(h.out))
        note_returned(h, id)
      end
    end
    if mode == 'b' then
      -- The URL is returned: its times are not needed any more.
      if leased[i] and start_ms then times[#times], times[#times - 1] = nil, nil end
      put_url_back(id)
    end
    schedule(h, now + tonumber(wait))
    answers[i] = start_ms and (str(start_ms) .. ' ' .. str(end_ms) .. ' ' .. str(eligible(h))) or '-'
  end
  write_slots(slots)
  many('HSET', P .. 'ld', times)
  return answers
end

-- per_host > 1: the host's next slot may be granted one delay after this request started, before its end is known.
local function report_start(text)
  local id, ago = match(text, '^(%S+) (%S+)$')
  local slot = call('HGET', P .. 'ld', 's' .. id)
  if not slot then return end
  local h = host(match(slot, '^(%S+)'))
  local at = now - tonumber(ago)
  if call('HEXISTS', P .. 'ld', id) == 1 then call('HSETNX', P .. 'ld', 't' .. id, str(at) .. ' -') end
  if at > h.ls then
    h.ls = at
    put(h, 'ls', str(at))
  end
  if h.un == id then
    h.un = ''
    touch(h)
  end
  schedule(h)
end
