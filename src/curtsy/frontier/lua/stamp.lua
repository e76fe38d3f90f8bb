-- stamp.lua: part of every script that writes. Records when the frontier last changed: a caller that knows a later
-- change is refused (preamble.lua), because the server then holds an old snapshot.
call('HSET', KEYS[1], 'last', str(max(now, tonumber(held[6]) or 0)))
