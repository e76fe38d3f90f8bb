"""Crawls and robots rules as one process knows them: read from the store when needed, cached, and refreshed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from curtsy.content.needs_browser import goes_directly, is_probe
from curtsy.core.model import Crawl, CrawlState, Kind, Lease, Page
from curtsy.core.observe import log_crawl
from curtsy.core.settings import Settings
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.host_policy import HostPolicy
from curtsy.frontier.frontier import Frontier
from curtsy.rules import network_profile, robots_policy
from curtsy.rules.robots import Robots
from curtsy.rules.urls import fingerprint, host_key, origin
from curtsy.services.scans import Scans
from curtsy.store import crawls, hosts, pages
from curtsy.store.engine import Store, read

_MAX_RULES = 20_000
_PAGES = (Kind.PAGE, Kind.BROWSER)


class OriginRules(NamedTuple):
    """The robots rules of an origin."""

    fetched_ms: int
    robots: Robots
    verdict: str


class CrawlCache:
    """One per process."""

    def __init__(
        self, frontier: Frontier, store: Store, settings: Settings, host_policy: HostPolicy,
        scans: Scans, *, network: network_profile.NetworkProfile | None = None,
        on_halt: Callable[[set[int]], None] = lambda crawls: None,
    ) -> None:  # fmt: skip
        self._frontier, self._store, self._settings = frontier, store, settings
        self._host_policy, self._scans = host_policy, scans
        self.contexts: dict[int, CrawlContext] = {}
        #: by origin
        self.rules: dict[str, OriginRules] = {}
        #: host -> (pages that needed a browser, pages that did not); only of crawls that find out
        self.rendering: dict[str, tuple[int, int]] = {}
        #: crawls that have not ended, as last read
        self._states: dict[int, tuple[CrawlState, int]] = {}
        #: called with crawls that were paused or have ended
        self._on_halt = on_halt
        #: crawls that the frontier reports as paused or ended; the store has not been read since
        self._halted: set[int] = set()
        #: proxy and DNS settings of this process; None: it serves every crawl
        self._network = network
        #: crawls with other proxy or DNS settings, which this process does not serve
        self.foreign: set[int] = set()
        #: crawls whose state the frontier may not know
        self._untold: set[int] = set()

    def forget_ended(self) -> None:
        """Drops the contexts of ended crawls. Call it only while none of their requests is in flight."""
        for n in [n for n, context in self.contexts.items() if context.crawl.state in crawls.ENDED]:
            del self.contexts[n]

    async def load(self, leases: list[Lease]) -> None:
        """Reads everything that these leases need."""
        stale = {lease.crawl for lease in leases if self._is_stale(lease)}
        unknown = {origin(lease.entry.url) for lease in leases if self._rules_missing(lease)}
        if stale or unknown:
            await self._read(stale, unknown)
        unmet = {lease.host for lease in leases if self._is_unmet(lease)}
        if unmet:
            if len(self.rendering) > _MAX_RULES:
                self.rendering.clear()
            self.rendering |= await read(self._store, hosts.rendering, unmet)

    def is_missing(self, lease: Lease) -> bool:
        if self._is_stale(lease) or self._rules_missing(lease):
            return True
        if lease.entry.kind not in _PAGES:
            return False
        return self.contexts[lease.crawl].revisits or self._is_unmet(lease)

    def _is_unmet(self, lease: Lease) -> bool:
        """Whether the facts about rendering of the host have not been read yet."""
        wanted = lease.entry.kind is Kind.PAGE and self.contexts[lease.crawl].auto_render
        return wanted and lease.host not in self.rendering

    def goes_to_browser(self, lease: Lease) -> bool:
        """Whether pages of its host need a browser. Some plain requests are still sent, to notice a change."""
        needed, plain = self.rendering.get(lease.host, (0, 0))
        return goes_directly(needed, plain) and not is_probe(fingerprint(lease.entry.url))

    def learn(self, host: str, needed: bool) -> None:
        """Counts a page that needed a browser or not. The store counts it with the page's commit."""
        before = self.rendering.get(host, (0, 0))
        self.rendering[host] = (before[0] + needed, before[1] + (not needed))

    def allows(self, url: str, agent: str) -> bool | None:
        """What the cached robots rules say; None: they are not cached. A denied host allows nothing."""
        if self._host_policy.denies(host_key(url, self._settings.politeness_unit)):
            return False
        known = self.rules.get(origin(url))
        if known is None:
            return None
        return robots_policy.allows(known.verdict, known.robots, url, agent)

    def _is_stale(self, lease: Lease) -> bool:
        context = self.contexts.get(lease.crawl)
        return context is None or context.crawl.version < lease.crawl_version

    def _rules_missing(self, lease: Lease) -> bool:
        if lease.entry.kind is Kind.ROBOTS:
            return False
        known = self.rules.get(origin(lease.entry.url))
        return known is None or known.fetched_ms != lease.robots_ms

    async def _read(self, crawl_numbers: set[int], origins: set[str]) -> None:
        for n in crawl_numbers:
            await self._load_crawl(n)
        if len(self.rules) > _MAX_RULES:
            self.rules.clear()
        found = await read(self._store, hosts.get_robots, origins) if origins else {}
        for where, state in found.items():
            self.rules[where] = OriginRules(state.fetched_ms, robots_policy.rules_of(state), state.verdict)

    async def _load_crawl(self, n: int) -> CrawlContext:
        crawl = await read(self._store, crawls.by_n, n)
        context = self.contexts.get(n)
        if context is None:
            revisits = await read(self._store, pages.any_other, n)
            context = CrawlContext(crawl, self._settings, self._host_policy.denies, revisits=revisits)
            context = self.contexts.setdefault(n, context)
            if (
                self._network is not None
                and network_profile.of(await read(self._store, crawls.settings_of, n)) != self._network
            ):
                self.foreign.add(n)
                why = "its proxy or DNS settings differ from this process's"
                log_crawl(crawl, "crawl_skipped", level="warning", reason=why)
            else:
                log_crawl(crawl, "crawl_joined")
        else:
            context.renew(crawl)
        if crawl.state not in crawls.ACTIVE:
            # It was paused or ended while no process served it.
            await self._frontier.set_crawl(crawl, keep_budget=True)
        return context

    async def previous(self, leases: list[Lease]) -> dict[int, Page]:
        """Their pages in other crawls: for conditional requests, and to recognize an unchanged body."""
        wanted: dict[int, dict[bytes, int]] = {}
        for lease in leases:
            if lease.entry.kind in _PAGES and self.contexts[lease.crawl].revisits:
                wanted.setdefault(lease.crawl, {})[fingerprint(lease.entry.url)] = lease.fence
        found: dict[int, Page] = {}
        for crawl, fences in wanted.items():
            for fp, page in (await read(self._store, pages.previous, crawl, list(fences))).items():
                found[fences[fp]] = page
        return found

    def may_run(self, crawl: int) -> bool:
        """Nothing is sent for a crawl that was paused or has ended, or whose proxy or DNS settings differ."""
        return (
            crawl not in self._halted
            and crawl not in self.foreign
            and self.contexts[crawl].crawl.state in crawls.ACTIVE
        )

    def halt(self, numbers: set[int]) -> None:
        """The frontier reports that these were paused or have ended."""
        self._halted |= {n for n in numbers if n in self.contexts and self.may_run(n)}
        self._on_halt(numbers)

    async def refresh(self) -> None:
        """Reads from the store which crawls were paused, resumed, canceled or extended. It does not ask the frontier:
        an unavailable frontier must not delay it.
        """
        states, before = await read(self._store, crawls.states), self._states
        self._states = states
        for n, context in list(self.contexts.items()):
            known, now = (context.crawl.state, context.crawl.version), states.get(n)
            was_halted = n in self._halted
            if was_halted or (now != known and (now is not None or known[0] not in crawls.ENDED)):
                context.renew(await read(self._store, crawls.by_n, n))
                self._halted.discard(n)
                if was_halted or context.crawl.state is not known[0]:
                    self._untold.add(n)
                if not self.may_run(n):
                    self._on_halt({n})
        for n, (state, _) in states.items():
            was = before.get(n)
            if n not in self.contexts and state is CrawlState.RUNNING and was and was[0] is not state:
                self._untold.add(n)

    async def tell(self) -> None:
        """Sends changes in the store to the frontier: crawls, and the operator's settings of hosts."""
        if await self._host_policy.refresh():
            for context in self.contexts.values():
                context.forget_links()
        for n in sorted(self._untold):
            self._untold.discard(n)
            try:
                await self._tell(await read(self._store, crawls.by_n, n))
            except BaseException:
                self._untold.add(n)
                raise

    async def _tell(self, crawl: Crawl) -> None:
        """Sends the frontier whether a crawl may run. Requests in flight keep their share of the budget."""
        await self._frontier.set_crawl(crawl, keep_budget=True)
        if crawl.state is CrawlState.RUNNING:
            await self._scans.put_back(crawl.n)
