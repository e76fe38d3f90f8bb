"""What a process knows of crawls and robots rules: read from the store when needed, kept, and looked at again."""

from __future__ import annotations

from collections.abc import Callable

from curtsy.core.model import Crawl, CrawlState, Kind, Lease, Page
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.host_policy import HostPolicy
from curtsy.frontier.frontier import Frontier
from curtsy.html.needs_browser import goes_directly, is_probe
from curtsy.rules import network_profile
from curtsy.rules.robots import Robots
from curtsy.rules.urls import fingerprint, host_key, origin
from curtsy.services.scans import Scans
from curtsy.store import crawls, hosts, pages
from curtsy.store.engine import Store, read

_MAX_RULES = 20_000
_PAGES = (Kind.PAGE, Kind.BROWSER)


class CrawlCache:
    """One per process."""

    def __init__(
        self, frontier: Frontier, store: Store, settings: Settings, host_policy: HostPolicy,
        scans: Scans, *, network: network_profile.Ways | None = None,
        on_halt: Callable[[set[int]], None] = lambda crawls: None,
    ) -> None:  # fmt: skip
        self._frontier, self._store, self._settings = frontier, store, settings
        self._host_policy, self._scans = host_policy, scans
        self.contexts: dict[int, CrawlContext] = {}
        #: origin -> (when its rules were fetched, the rules, the verdict they came with)
        self.rules: dict[str, tuple[int, Robots, str]] = {}
        #: host -> (pages that needed a browser, pages that did not); only of crawls that find out
        self.rendering: dict[str, tuple[int, int]] = {}
        #: crawls that have not ended, as last seen
        self._states: dict[int, tuple[CrawlState, int]] = {}
        #: called with crawls that were paused or have ended
        self._on_halt = on_halt
        #: paused or ended, says the frontier; the store has not been asked since
        self._halted: set[int] = set()
        #: proxy and DNS settings of this process; None: it serves every crawl
        self._network = network
        #: crawls with other proxy or DNS settings, which this process does not serve
        self.foreign: set[int] = set()
        #: the frontier may not know what the store says of them
        self._untold: set[int] = set()

    def forget_ended(self) -> None:
        """What was kept for crawls that have ended; only while nothing of them is under way here."""
        for n in [n for n, context in self.contexts.items() if context.crawl.state in crawls.ENDED]:
            del self.contexts[n]

    async def load(self, leases: list[Lease]) -> None:
        """Everything that these leases need."""
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
        """Whether pages of the host need a browser was not read yet."""
        wanted = lease.entry.kind is Kind.PAGE and self.contexts[lease.crawl].auto_render
        return wanted and lease.host not in self.rendering

    def goes_to_browser(self, lease: Lease) -> bool:
        """Its host is known well enough: a plain request would be in vain. Some are made all the same, to see."""
        needed, plain = self.rendering.get(lease.host, (0, 0))
        return goes_directly(needed, plain) and not is_probe(fingerprint(lease.entry.url))

    def learn(self, host: str, needed: bool) -> None:
        """What a page told; the store learns it with the page."""
        before = self.rendering.get(host, (0, 0))
        self.rendering[host] = (before[0] + needed, before[1] + (not needed))

    def allows(self, url: str, agent: str) -> bool | None:
        """What the robots rules say that stand here; None: they are not known. A denied host allows nothing."""
        if self._host_policy.denies(host_key(url, self._settings.politeness_unit)):
            return False
        known = self.rules.get(origin(url))
        if known is None:
            return None
        return known[2] in ("rules", "allow") and known[1].allows(url, agent)

    def _is_stale(self, lease: Lease) -> bool:
        context = self.contexts.get(lease.crawl)
        return context is None or context.crawl.version < lease.crawl_version

    def _rules_missing(self, lease: Lease) -> bool:
        if lease.entry.kind is Kind.ROBOTS:
            return False
        known = self.rules.get(origin(lease.entry.url))
        return known is None or known[0] != lease.robots_ms

    async def _read(self, crawl_numbers: set[int], origins: set[str]) -> None:
        for n in crawl_numbers:
            await self._load_crawl(n)
        if len(self.rules) > _MAX_RULES:
            self.rules.clear()
        found = await read(self._store, hosts.get_robots, origins) if origins else {}
        for where, state in found.items():
            rules = Robots.parse(state.body) if state.verdict == "rules" else Robots.ALLOW_ALL
            self.rules[where] = (state.fetched_ms, rules, state.verdict)

    async def _load_crawl(self, n: int) -> CrawlContext:
        crawl = await read(self._store, crawls.by_n, n)
        context = self.contexts.get(n)
        if context is None:
            context = self.contexts[n] = CrawlContext(crawl, self._settings, self._host_policy.denies)
            context.revisits = await read(self._store, pages.any_other, n)
            if (
                self._network is not None
                and network_profile.of(await read(self._store, crawls.settings_of, n)) != self._network
            ):
                self.foreign.add(n)
                log(
                    "crawl_left_alone",
                    level="warning",
                    crawl=crawl.id,
                    reason="its proxy or DNS settings differ from this process's",
                )
        else:
            context.renew(crawl)
        if crawl.state not in crawls.ACTIVE:
            # It was paused or ended while no process looked after it.
            await self._frontier.set_crawl(crawl, keep_budget=True)
        return context

    async def previous(self, leases: list[Lease]) -> dict[int, Page]:
        """Their pages in other crawls: what conditional requests name, and what bodies are compared with."""
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
        """The frontier says that these were paused or have ended."""
        self._halted |= {n for n in numbers if n in self.contexts and self.may_run(n)}
        self._on_halt(numbers)

    async def refresh(self) -> None:
        """Crawls may have been paused, resumed, cancelled or extended by others. Asks the store only: this must not
        wait for a frontier that is away."""
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
        """The frontier learns what changed in the store: crawls, and what the operator said about hosts."""
        if await self._host_policy.heed():
            for context in self.contexts.values():
                context.look_again()
        for n in sorted(self._untold):
            self._untold.discard(n)
            try:
                await self._let(await read(self._store, crawls.by_n, n))
            except BaseException:
                self._untold.add(n)
                raise

    async def _let(self, crawl: Crawl) -> None:
        """The frontier learns that a crawl may run, or may not. What is under way keeps what it was granted."""
        await self._frontier.set_crawl(crawl, keep_budget=True)
        if crawl.state is CrawlState.RUNNING:
            await self._scans.put_back(crawl.n)
