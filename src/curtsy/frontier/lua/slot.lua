-- slot.lua: a host's slot without a URL, for external clients (Airflow, Scrapy). Returned by a release of mode k.
--
-- ARGV  2 host   3 slot in ms   4 minimum delay in ms of the client
-- Returns { now, id or '', ms to wait, delay, per_host } ; id '' and wait -1: introduce the host first
local h = host(ARGV[2])
if not h.known then return { tostring(now), '', -1, 0, 1 } end
-- The client's delay applies to this slot only.
local cd = h.cd
h.cd = max(cd, tonumber(ARGV[4]))
local wait, d = eligible(h) - now, delay_of(h)
h.cd = cd
if is_taken(h) then wait = max(wait, 100) end
if wait > 0 then return { tostring(now), '', wait, d, h.ph } end
local id = tostring(call('HINCRBY', KEYS[1], 'ctr', 1))
call('PERSIST', h.key)
call('ZADD', P .. 'slots', now + tonumber(ARGV[3]), id)
call('HSET', P .. 'ld', 's' .. id, table.concat({ h.name, now, d, h.ph, '-' }, ' '))
h.out = h.out + 1
put(h, 'out', h.out)
note_unreported(h, id)
schedule(h)
finish()
return { tostring(now), id, 0, d, h.ph }
