"""robots.txt of hosts that a page asks beside its own: learnt once, kept for a while, forbidden until known."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from curtsy.core.outcome import Outcome
from curtsy.rules.decide import decide_robots
from curtsy.rules.robots import MAX_BYTES, Robots
from curtsy.rules.urls import origin

#: asks for a URL, within the visit's limits
Ask = Callable[[str, int], Awaitable[Outcome]]

_MAX_ORIGINS = 5_000
_KEPT_S = 3600.0
#: a host that did not tell is asked again after this
_FAILURE_S = 60.0


class ThirdPartyRobots:
    """One per process."""

    def __init__(self, kept_s: float = _KEPT_S) -> None:
        self._kept_s = min(kept_s, _KEPT_S)
        self._known: OrderedDict[str, tuple[float, Robots]] = OrderedDict()
        self._learning: dict[str, asyncio.Future[None]] = {}

    async def allows(self, url: str, agent: str, ask: Ask, now: Callable[[], float]) -> bool:
        """May the agent ask for the URL? What is not known is learnt through `ask`."""
        where = origin(url)
        rules = self._get(where, now())
        if rules is None:
            await self._learn(where, ask, now)
            rules = self._get(where, now())
        return rules is not None and rules.allows(url, agent)

    def _get(self, where: str, now: float) -> Robots | None:
        found = self._known.get(where)
        return found[1] if found is not None and found[0] > now else None

    async def _learn(self, where: str, ask: Ask, now: Callable[[], float]) -> None:
        if (under_way := self._learning.get(where)) is not None:
            await asyncio.wait([under_way])
            return
        future = self._learning[where] = asyncio.get_running_loop().create_future()
        try:
            rules, kept_s = await self._read(where, ask)
            self._known.pop(where, None)
            self._known[where] = (now() + kept_s, rules)
            while len(self._known) > _MAX_ORIGINS:
                self._known.popitem(last=False)
        finally:
            # Also where the visit was broken off: those who waited find nothing known, and refuse.
            del self._learning[where]
            future.set_result(None)

    async def _read(self, where: str, ask: Ask) -> tuple[Robots, float]:
        url, hops = f"{where}/robots.txt", 0
        while True:
            outcome = await ask(url, MAX_BYTES)
            answer = decide_robots(outcome, hops)
            if answer.verdict != "follow" or answer.location is None:
                break
            url, hops = answer.location, hops + 1
        if answer.verdict == "rules":
            return Robots.parse(outcome.body), self._kept_s
        return (Robots.ALLOW_ALL, self._kept_s) if answer.verdict == "allow" else (Robots.FORBID_ALL, _FAILURE_S)
