-- slot_wait.lua: when an external client may get a slot. Read only: slot.lua takes it.
--
-- ARGV  2 host   3 minimum delay in ms of the client
-- Returns { now, ms to wait, slots in use, ms of its earliest next request }
local h = host(ARGV[2])
if not h.known then return { tostring(now), 0, 0, '0' } end
h.cd = max(h.cd, tonumber(ARGV[3]))
local at = eligible(h)
local wait = max(0, at - now)
if is_taken(h) then wait = max(wait, 100) end
return { tostring(now), wait, h.out, str(at) }
