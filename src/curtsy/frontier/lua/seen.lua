-- seen.lua: which fingerprints may be new? Read only: a filter; the store decides.
--
-- seen            HASH  total entries, and entries of each crawl
-- seen:<c>        HASH  g newest generation, n entries in it, o oldest one, d its buckets up to there were dropped
-- seen:<c>:<g>:<b>  SET of 63-bit integers; generation g has 64 * 4^g buckets of about 256: each stays an intset
-- ARGV  2 crawl   3 ... fingerprints
-- Returns { now, positions (from 0) of those not seen }
local c = ARGV[2]
local v = call('HMGET', P .. 'seen:' .. c, 'g', 'o')
local newest, oldest = tonumber(v[1]), tonumber(v[2]) or 0
local fresh = {}
for i = 3, #ARGV do
  local fp, known = ARGV[i], false
  if newest then
    local low = tonumber(string.sub(fp, -12))
    for g = newest, oldest, -1 do
      if call('SISMEMBER', P .. 'seen:' .. c .. ':' .. g .. ':' .. (low % (64 * 4 ^ g)), fp) == 1 then
        known = true
        break
      end
    end
  end
  if not known then fresh[#fresh + 1] = i - 3 end
end
return { tostring(now), fresh }
