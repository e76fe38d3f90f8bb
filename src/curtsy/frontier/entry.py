"""How a URL is stored in the frontier: `<kind><depth>[,attempts,crashes,solo_crashes] <rest>[TAB chain]`.

`rest` is the path for https://<host>, `http:` and the path for http://<host>, else the whole URL. A typical entry is
its path plus four bytes, so memory per listed URL is bounded.
"""

from __future__ import annotations

import json

from curtsy.core.model import Chain, Entry, Kind


def short_origin(origin: str, host: str) -> str:
    """`s` for https://<host>, `h` for http://<host>, else the origin itself; the same in Lua's origin_of."""
    if origin == f"https://{host}":
        return "s"
    return "h" if origin == f"http://{host}" else origin


def in_entry(url: str, host: str) -> str:
    """The URL as its entry stores it."""
    https = f"https://{host}/"
    if url.startswith(https):
        return url[len(https) - 1 :]
    http = f"http://{host}/"
    # After "http:", a path that begins with two slashes would be read as an authority.
    if url.startswith(http) and not url.startswith(http + "/"):
        return "http:" + url[len(http) - 1 :]
    return url


def _whole(rest: str, host: str) -> str:
    if rest[0] == "/":
        return f"https://{host}{rest}"
    if rest.startswith("http:/") and rest[6:7] != "/":
        return f"http://{host}{rest[5:]}"
    return rest


def chain_json(chain: Chain) -> str:
    """The chain as compact JSON; fields with default values are omitted."""
    full = {
        "t": chain.trail,
        "s": chain.seed,
        "c": chain.cookies,
        "h": chain.cookie_host,
        "r": chain.robots_of,
        "g": chain.guess,
    }
    return json.dumps({key: value for key, value in full.items() if value}, separators=(",", ":"))


def chain_of(text: str) -> Chain:
    raw = json.loads(text)
    return Chain(
        trail=tuple(raw.get("t", ())),
        seed=raw.get("s", False),
        cookies=tuple(raw.get("c", ())),
        cookie_host=raw.get("h"),
        robots_of=raw.get("r"),
        guess=raw.get("g", False),
    )


def encode(entry: Entry, host: str) -> str:
    head = f"{entry.kind.value}{entry.depth}"
    if entry.attempts or entry.crashes or entry.solo_crashes:
        head += f",{entry.attempts},{entry.crashes},{entry.solo_crashes}"
    text = f"{head} {in_entry(entry.url, host)}"
    return text if entry.chain is None else f"{text}\t{chain_json(entry.chain)}"


_KINDS = {kind.value: kind for kind in Kind}


def decode(text: str, host: str) -> Entry:
    head, _, rest = text.partition(" ")
    rest, tab, chain = rest.partition("\t")
    depth, attempts, crashes, solo = head[1:], 0, 0, 0
    if "," in depth:
        depth, a, c, s = depth.split(",")
        attempts, crashes, solo = int(a), int(c), int(s)
    return Entry(
        url=_whole(rest, host),
        kind=_KINDS[head[0]],
        depth=int(depth),
        attempts=attempts,
        crashes=crashes,
        solo_crashes=solo,
        chain=chain_of(chain) if tab else None,
    )
