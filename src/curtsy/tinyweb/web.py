"""The whole tiny web: its hosts, their answers, and what robots.txt disallows on each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from curtsy.tinyweb import faults
from curtsy.tinyweb.answers import NOT_FOUND, Answer, Handler, Pages, Script
from curtsy.tinyweb.facts import DOMAIN, Kind, kind_of, org_host, org_number
from curtsy.tinyweb.pages import INTERNAL, OrgSite, Shape

CONTROL = f"control.{DOMAIN}"
#: bytes of rendered pages of organizations in the cache; beyond it, pages are rendered again
CACHE_BYTES = 32_000_000
#: seconds that a slow organization takes for each answer
SLOW_S = 1.5
#: organizations in the demo (`make crawl`): all kinds, also those with documents
DEMO_HOSTS = 18
#: hosts with faults in the demo that end within half a minute at a delay of 0.5 s
DEMO_FAULTS = (
    "robots-disallow", "robots-longest", "robots-crawl-delay", "robots-404", "robots-redirect-host", "robots-bom",
    "redirect-chain", "redirect-loop", "redirect-host", "redirect-private", "retry-after-seconds", "retry-after-date",
    "flapping-500", "gone", "refused", "keepalive-resend", "gzip-bomb", "endless", "type-lying", "charset",
    "nofollow", "noindex", "sitemap-index", "trap-session", "trap-segments", "duplicates", "etag", "cookie-redirect",
    "xn--bcher-kva",
)  # fmt: skip


@dataclass(slots=True)
class Site:
    """One host: its known answers by target, and the source of other answers."""

    name: str
    pages: dict[bytes, Answer | Handler] = field(default_factory=dict)
    org: OrgSite | None = None
    web: Web | None = None
    rest: Answer | Handler = NOT_FOUND
    #: seconds before each answer
    slow_s: float = 0.0

    def find(self, target: str) -> Answer | Handler:
        """Return the answer for a target that is not in `pages` yet."""
        if self.org is None:
            return self.rest
        answer = self.org.answer(target)
        if self.slow_s:
            return lambda _: Script(status=answer.status, steps=(self.slow_s, answer.wire))
        if self.web is not None and answer.status == 200:
            self.web.remember(self, target, answer)
        return answer


class Web:
    """N organizations with M pages each, and the hosts with faults."""

    def __init__(
        self, hosts: int = 20, shape: Shape | None = None, seed: int = 1, fault_names: Iterable[str] | None = None,
        slow: int = 0,
    ) -> None:  # fmt: skip
        """`slow`: this number of organizations, the last ones, take SLOW_S for each answer."""
        self.hosts, self.slow = hosts, slow
        self.shape = shape or Shape()
        self.seed = seed
        self.faults = faults.select(fault_names)
        self.control: Pages = {}
        self._cached_bytes = 0
        self._sites: dict[str, Site] = {}
        for fault in self.faults:
            # Built in advance: a slow first answer would delay all other hosts.
            self._sites[fault.host] = _site(fault.host, fault.build())

    @property
    def org_hosts(self) -> list[str]:
        return [org_host(number) for number in range(self.hosts)]

    @property
    def seeds(self) -> list[str]:
        return [f"http://{host}/" for host in self.org_hosts] + [seed for fault in self.faults for seed in fault.seeds]

    def site(self, host: str) -> Site:
        """Return the site of a host (lower case, optionally with a port)."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name == CONTROL:
            return _site(CONTROL, self.control)
        if name not in self._sites:
            number = org_number(name)
            known = number is not None and number < self.hosts
            org = OrgSite(name, self.shape, self.seed) if known else None
            if org is None:
                return Site(host)
            is_slow = number is not None and number >= self.hosts - self.slow
            self._sites[name] = Site(name, org=org, web=self, slow_s=SLOW_S if is_slow else 0.0)
        return self._sites[name]

    def remember(self, site: Site, target: str, answer: Answer) -> None:
        self._cached_bytes += len(answer.wire)
        if self._cached_bytes > CACHE_BYTES:
            for other in self._sites.values():
                if other.org is not None:
                    other.pages.clear()
            self._cached_bytes = len(answer.wire)
        site.pages[target.encode("latin-1")] = answer


def _site(name: str, pages: Pages) -> Site:
    known = {path.encode("latin-1"): answer for path, answer in pages.items() if path != "*"}
    return Site(name, pages=known, rest=pages.get("*", NOT_FOUND))


def forbidden(host: str, path: str) -> bool:
    """Return whether a host's robots.txt disallows a path for `curtsy`, according to the generator."""
    fault = faults.by_host().get(host)
    if fault is not None:
        return fault.forbids(path)
    return org_number(host) is not None and path.startswith(INTERNAL)


def unwanted(host: str, path: str) -> bool:
    """Return whether a crawler that respects nofollow, scope and the address guard never requests this."""
    fault = faults.by_host().get(host)
    return path in fault.unwanted if fault is not None else not host.endswith(f".{DOMAIN}")


def holds_rules(host: str, path: str) -> bool:
    """Return whether this is a robots.txt, of the host itself or of another one that redirects to it."""
    fault = faults.by_host().get(host)
    return path == "/robots.txt" or (fault is not None and path in fault.holds_rules)


def crawl_delay_s(host: str) -> float | None:
    """Return the Crawl-delay of the host's robots.txt, or None."""
    fault = faults.by_host().get(host)
    return fault.crawl_delay_s if fault is not None else None


def loaded_by(host: str, path: str) -> str | None:
    """Return the page whose script requests this, "*" if all pages do; None if it is not a subresource."""
    number = org_number(host)
    if number is None or kind_of(number) is not Kind.FETCHED:
        return None
    if path == "/app.js":
        return "*"
    if path.startswith("/data/") and path.endswith(".json"):
        return path.removeprefix("/data").removesuffix(".json")
    return None


def demo_seeds() -> list[str]:
    """Return seeds for a crawl at delay 0.5 s of less than a minute: some organizations and the quick faults."""
    orgs = [f"http://{org_host(number)}/" for number in range(DEMO_HOSTS)]
    return orgs + [seed for fault in faults.select(DEMO_FAULTS) for seed in fault.seeds]
