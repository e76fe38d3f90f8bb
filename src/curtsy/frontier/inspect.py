"""The state of a host, and of one of its URLs, in the frontier: for `explain`. Read only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curtsy.core.model import hot_value
from curtsy.core.settings import Settings
from curtsy.frontier.entry import in_entry
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import US, queue_name
from curtsy.frontier.shard import Shard


@hot_value()
class HostSnapshot:
    """The frontier's state of a host. Times are ms by its server's clock."""

    now_ms: int
    #: when the host is due; None: no queue waits for it, or all its slots are taken
    due_ms: int | None
    #: 0: never blocked
    blocked_until_ms: int
    #: requests to the host in flight
    slots_out: int
    #: the delay in force
    delay_ms: int
    #: the process that last sent a request to the host
    owner: str | None
    #: the crawl's queue of this host is loaded; otherwise it waits in the store
    loaded: bool = False
    #: more rows of the queue wait in the store
    backlog: bool = False
    #: rows of the queue are being read from the store
    scanning: bool = False
    #: skipped because the crawl's max_pages is spent for now
    starved: bool = False
    #: URLs of the queue that are listed
    listed: int = 0
    #: how many of them come before this URL; None: it is not listed
    behind: int | None = None
    #: when this URL is tried again
    delayed_until_ms: int | None = None
    #: this URL is leased: when its slot was taken or its request began, and when the lease ends
    leased_ms: int | None = None
    lease_expiry_ms: int | None = None


async def snapshot(
    server: str, settings: Settings, epochs: Sequence[int], host: str, crawl: int | None = None,
    url: str | None = None, *, render: bool = False,
) -> HostSnapshot | None:  # fmt: skip
    """Queries the server at this address; None if it does not have the store's epoch of the host's shard."""
    frontier = Frontier(server, settings, "explain")
    try:
        shard = frontier.shard_of(host)
        facts = await shard.facts()
        if not facts.valid or facts.number is None or facts.number != epochs[shard.number]:
            return None
        shard.use_epoch(facts.number, facts.run_id)
        return await inspect_host(frontier, host, crawl, url, render=render)
    finally:
        await frontier.close()


async def inspect_host(
    frontier: Frontier, host: str, crawl: int | None = None, url: str | None = None, *, render: bool = False
) -> HostSnapshot:
    """The state under the epoch in use; without a crawl and a URL, only that of the host. `render`: the URL waits for
    a browser.
    """
    shard = frontier.shard_of(host)
    rest = in_entry(url, host) if url is not None and crawl is not None else ""
    queue = "" if crawl is None else queue_name(crawl, render)
    raw = await shard.call("inspect", host, queue, rest)
    expiry, slot, times = raw[14], raw[15].decode(), raw[16].decode()
    waiting = raw[8] and rest and raw[12] == b"" and not raw[13]
    return HostSnapshot(
        now_ms=int(raw[0]),
        due_ms=_ms(raw[1]),
        blocked_until_ms=int(raw[2]),
        slots_out=int(raw[3]),
        delay_ms=int(raw[4]),
        owner=raw[5].decode() or None,
        loaded=bool(raw[6]),
        backlog=bool(raw[7]),
        scanning=bool(raw[9]),
        starved=bool(raw[10]),
        listed=raw[11],
        behind=None if raw[12] == b"" else int(raw[12]),
        delayed_until_ms=await _delayed(shard, f"{host}{US}{queue}{US}", rest) if waiting else None,
        leased_ms=int(slot.split(" ")[1] if slot else times.split(" ")[0]) if slot or times else None,
        lease_expiry_ms=_ms(expiry),
    )


@hot_value()
class Prospect:
    """When an external client may expect a slot of a host."""

    wait_s: float
    #: requests to the host in flight
    slots_out: int
    #: ms by the server's clock before which the host receives no request; 0: the frontier does not know the host
    at_ms: int


async def prospect(frontier: Frontier, host: str, delay_s: float = 0) -> Prospect:
    """The prospect under the epoch in use. Takes no slot, so another process may be faster."""
    raw = await frontier.shard_of(host).call("slot_wait", host, int(delay_s * 1000))
    return Prospect(wait_s=float(raw[1]) / 1000, slots_out=int(raw[2]), at_ms=int(float(raw[3])))


async def _delayed(shard: Shard, before: str, rest: str) -> int | None:
    """When an entry of this queue is tried again."""
    async for member, at_ms in shard.delayed(before):
        entry = member.decode().split(US, 2)[2]
        if entry.partition(" ")[2].partition("\t")[0] == rest:
            return at_ms
    return None


def _ms(value: Any) -> int | None:
    return None if value in (b"", None) else int(float(value))
