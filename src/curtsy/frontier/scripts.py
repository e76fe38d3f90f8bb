"""The Lua scripts of lua/*.lua, called by digest. Each one except `begin` follows the preamble."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from importlib.resources import files

#: scripts that change nothing
READS = frozenset({"future", "idle", "inspect", "seen", "slot_wait"})
#: scripts that a server without free memory must still run
_LOW_MEMORY = frozenset({"beat", "blame", "drop", "forget", "lease", "leave", "reap", "settle"})
#: parts between the preamble and the script itself
_PARTS = {"lease": ("release", "due_retries"), "settle": ("release",), "watch": ("due_retries",)}


@cache
def source(name: str) -> str:
    folder = files("curtsy.frontier") / "lua"
    parts = (name,) if name == "begin" else ("preamble", *_guards(name), *_PARTS.get(name, ()), name)
    return "\n".join((folder / f"{part}.lua").read_text("utf-8") for part in parts)


def _guards(name: str) -> tuple[str, ...]:
    if name in READS:
        return ()
    return ("low_memory", "stamp") if name in _LOW_MEMORY else ("stamp",)


@cache
def digest(name: str) -> str:
    return sha1(source(name).encode()).hexdigest()
