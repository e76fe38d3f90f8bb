-- future.lua: which of these hosts may receive no request yet? Read only; the store keeps the result.
--
-- ARGV  2 ... hosts
-- Returns { now, "host 0x1f ms of its earliest next request 0x1f ms until it is blocked" of those }
local found = {}
for i = 2, #ARGV do
  local h = host(ARGV[i])
  local blocked = h.bl
  h.bl = 0
  local due = eligible(h)
  if due > now or blocked > now then found[#found + 1] = h.name .. US .. due .. US .. blocked end
end
return { tostring(now), found }
