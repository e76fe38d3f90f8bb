-- watch.lua: how much is due, and when more will be; for the dispatcher and for the gauges.
--
-- ARGV  2 detail (1: count requests in flight by lane; read only)
-- Returns { now, hosts due now in due:high, due:batch, due:slow, due:solo, when the next host is due in each of them
--           or '', when the next retry, slot, lease or scan is due or '', scans,
--           loaded queues in high, batch, slow, requests in flight in high, batch, slow,
--           then of due:render and due:render:solo: hosts due now, when the next one is; visits in flight;
--           loaded queues with pages that wait for a browser, which the others count too }
local LANES = { 'high', 'batch', 'slow', 'solo', 'render', 'render:solo' }
local detail = ARGV[2] == '1'
if not detail then list_due_retries() end
finish()

local due, soon, earliest = {}, {}, nil
for i, lane in ipairs(LANES) do
  due[i] = call('ZCOUNT', P .. 'due:' .. lane, '-inf', now)
  soon[i] = call('ZRANGEBYSCORE', P .. 'due:' .. lane, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or ''
end
for _, key in ipairs({ 'delayed', 'slots', 'leases', 'scans' }) do
  local first = call('ZRANGE', P .. key, 0, 0, 'WITHSCORES')[2]
  if first and first ~= 'inf' then earliest = min(earliest or tonumber(first), tonumber(first)) end
end

local play, out = { 0, 0, 0, 0 }, { high = 0, batch = 0, slow = 0, solo = 0, render = 0, ['render:solo'] = 0 }
if detail then
  for i, lane in ipairs({ 'high', 'batch', 'slow', 'render' }) do
    play[i] = tonumber(call('HGET', P .. 'play', lane) or 0)
  end
  for _, id in ipairs(call('ZRANGE', P .. 'slots', 0, -1)) do
    local lease = call('HGET', P .. 'ld', id)
    local lane = lease and split(lease)[9] or 'batch'
    out[lane] = (out[lane] or 0) + 1
  end
end
return { tostring(now), due[1], due[2], due[3], due[4], soon[1], soon[2], soon[3], soon[4],
  earliest and tostring(earliest) or '', scans,
  play[1], play[2], play[3], out.high, out.batch + out.solo, out.slow,
  due[5], due[6], soon[5], soon[6], out.render + out['render:solo'], play[4] }
