-- prospect.lua: when a guest may have a host's turn. Reads only: whoever wants the turn must take it (slot.lua).
--
-- ARGV  2 host   3 delay in ms that the guest wants at least
-- Answers { now, ms to wait, slots out, the moment before which it is not asked }
local h = host(ARGV[2])
if not h.known then return { tostring(now), 0, 0, '0' } end
h.cd = max(h.cd, tonumber(ARGV[3]))
local at = eligible(h)
local wait = max(0, at - now)
if h.out >= h.ph or h.un ~= '' then wait = max(wait, 100) end
return { tostring(now), wait, h.out, str(at) }
