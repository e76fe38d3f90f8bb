"""robots.txt of the other sites that a rendered page loads from. Until it is known, nothing of the site is loaded."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from curtsy.core.outcome import Outcome
from curtsy.rules.robots import MAX_BYTES, Robots
from curtsy.rules.robots_policy import decide_robots, third_party_rules
from curtsy.rules.urls import origin

#: fetches (URL, most bytes) within the limits of the page visit
Ask = Callable[[str, int], Awaitable[Outcome]]

_MAX_ORIGINS = 5_000


class ThirdPartyRobots:
    """One per process."""

    def __init__(self, ttl_s: float = 3600.0) -> None:
        self._ttl_s = ttl_s
        self._known: OrderedDict[str, tuple[float, Robots]] = OrderedDict()
        self._fetching: dict[str, asyncio.Future[None]] = {}

    async def allows(self, url: str, agent: str, ask: Ask, now: Callable[[], float]) -> bool:
        """Whether the agent may fetch the URL. A robots.txt that is not known yet is fetched with `ask`."""
        where = origin(url)
        rules = self._get(where, now())
        if rules is None:
            await self._fetch(where, ask, now)
            rules = self._get(where, now())
        return rules is not None and rules.allows(url, agent)

    def _get(self, where: str, now: float) -> Robots | None:
        found = self._known.get(where)
        return found[1] if found is not None and found[0] > now else None

    async def _fetch(self, where: str, ask: Ask, now: Callable[[], float]) -> None:
        if (under_way := self._fetching.get(where)) is not None:
            await asyncio.wait([under_way])
            return
        future = self._fetching[where] = asyncio.get_running_loop().create_future()
        try:
            rules, kept_s = await self._read(where, ask)
            self._known.pop(where, None)
            self._known[where] = (now() + kept_s, rules)
            while len(self._known) > _MAX_ORIGINS:
                self._known.popitem(last=False)
        finally:
            # Also after a visit that was canceled: those that waited find no rules, and refuse.
            del self._fetching[where]
            future.set_result(None)

    async def _read(self, where: str, ask: Ask) -> tuple[Robots, float]:
        url, hops = f"{where}/robots.txt", 0
        while True:
            outcome = await ask(url, MAX_BYTES)
            answer = decide_robots(outcome, hops)
            if answer.verdict != "follow" or answer.location is None:
                break
            url, hops = answer.location, hops + 1
        return third_party_rules(answer, outcome, self._ttl_s)
