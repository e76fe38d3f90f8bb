"""The Lua scripts of lua/*.lua, called by digest. Each one except `begin` follows the preamble."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from importlib.resources import files

#: parts between the preamble and the script itself
_PARTS = {"lease": ("release", "ripe"), "settle": ("release",), "watch": ("ripe",)}


@cache
def source(name: str) -> str:
    folder = files("curtsy.frontier") / "lua"
    parts = (name,) if name == "begin" else ("preamble", *_PARTS.get(name, ()), name)
    return "\n".join((folder / f"{part}.lua").read_text("utf-8") for part in parts)


@cache
def digest(name: str) -> str:
    return sha1(source(name).encode()).hexdigest()
