-- slot.lua: a host's slot without a URL, for guests (Airflow, Scrapy, ...). Given back by a release of mode k.
--
-- ARGV  2 host   3 slot in ms   4 delay in ms that the guest wants at least
-- Answers { now, id or '', ms to wait, delay, per_host } ; id '' and wait -1: introduce the host first
local name = ARGV[2]
local h = host(name)
if not h.known then return { tostring(now), '', -1, 0, 1 } end
redis.call('PERSIST', h.key)
if tonumber(ARGV[4]) > h.op then
  h.op = tonumber(ARGV[4])
end
local wait = eligible(h) - now
if h.out >= h.ph or h.un > 0 then wait = max(wait, 100) end
if wait > 0 then return { tostring(now), '', wait, delay_of(h), h.ph } end
local id = redis.call('HINCRBY', KEYS[1], 'ctr', 1)
redis.call('ZADD', P .. 'slots', now + tonumber(ARGV[3]), id)
redis.call('HSET', P .. 'sd', id, table.concat({ name, now, delay_of(h), h.ph, '-' }, ' '))
h.out = h.out + 1
h.un = h.ph > 1 and 1 or 0
redis.call('HSET', h.key, 'out', h.out, 'un', h.un)
unbench(name, h)
return { tostring(now), tostring(id), 0, delay_of(h), h.ph }
