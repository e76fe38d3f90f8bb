"""The whole tiny web: which hosts there are, what each says, and what robots.txt forbids on each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from curtsy.tinyweb import faults
from curtsy.tinyweb.answers import NOT_FOUND, Answer, Handler, Pages
from curtsy.tinyweb.facts import DOMAIN, Kind, kind_of, org_host, org_number
from curtsy.tinyweb.faults.registry import FaultHost
from curtsy.tinyweb.pages import INTERNAL, OrgSite, Shape

CONTROL = f"control.{DOMAIN}"
#: rendered pages of organisations kept in memory, in bytes; over it a host's pages are rendered anew
CACHE_BYTES = 32_000_000
#: organisations of the selection that `make crawl` shows
DEMO_HOSTS = 12
#: and hosts with faults that end within half a minute at a delay of 0.5 s
DEMO_FAULTS = (
    "robots-disallow", "robots-longest", "robots-crawl-delay", "robots-404", "robots-redirect-host", "robots-bom",
    "redirect-chain", "redirect-loop", "redirect-host", "redirect-private", "retry-after-seconds", "retry-after-date",
    "flapping-500", "gone", "refused", "keepalive-resend", "gzip-bomb", "endless", "type-lying", "charset",
    "nofollow", "noindex", "sitemap-index", "trap-session", "trap-segments", "duplicates", "etag", "cookie-redirect",
    "xn--bcher-kva",
)  # fmt: skip


@dataclass(slots=True)
class Site:
    """One host: its known answers by target, and where further ones come from."""

    name: str
    pages: dict[bytes, Answer | Handler] = field(default_factory=dict)
    org: OrgSite | None = None
    web: Web | None = None
    rest: Answer | Handler = NOT_FOUND

    def find(self, target: str) -> Answer | Handler:
        """What stands at a target that is not in `pages` yet."""
        if self.org is None:
            return self.rest
        answer = self.org.answer(target)
        if self.web is not None and answer.status == 200:
            self.web.remember(self, target, answer)
        return answer


class Web:
    """N organisations with M pages each, and the hosts with faults."""

    def __init__(
        self, hosts: int = 20, shape: Shape | None = None, seed: int = 1, fault_names: Iterable[str] | None = None
    ) -> None:
        self.hosts = hosts
        self.shape = shape or Shape()
        self.seed = seed
        self.faults = faults.select(fault_names)
        self.control: Pages = {}
        self._cached_bytes = 0
        self._sites: dict[str, Site] = {}
        for fault in self.faults:
            # Built at once: a slow first answer would make every other host look late.
            self._sites[fault.host] = _fault_site(fault)

    @property
    def org_hosts(self) -> list[str]:
        return [org_host(number) for number in range(self.hosts)]

    @property
    def seeds(self) -> list[str]:
        return [f"http://{host}/" for host in self.org_hosts] + [seed for fault in self.faults for seed in fault.seeds]

    def site(self, host: str) -> Site:
        """The site of a host (lower case, perhaps with a port)."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name == CONTROL:
            return _site(CONTROL, self.control)
        if name not in self._sites:
            number = org_number(name)
            known = number is not None and number < self.hosts
            org = OrgSite(name, self.shape, self.seed) if known else None
            if org is None:
                return Site(host)
            self._sites[name] = Site(name, org=org, web=self)
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


def _fault_site(fault: FaultHost) -> Site:
    return _site(fault.host, fault.build())


def forbidden(host: str, path: str) -> bool:
    """Whether robots.txt of a host forbids a path to `curtsy`, by the generator's own crawl_cache."""
    fault = faults.by_host().get(host)
    if fault is not None:
        return fault.forbids(path)
    return org_number(host) is not None and path.startswith(INTERNAL)


def unwanted(host: str, path: str) -> bool:
    """Whether a crawler that honours nofollow, scope and the address guard would never ask for this."""
    fault = faults.by_host().get(host)
    return path in fault.unwanted if fault is not None else not host.endswith(f".{DOMAIN}")


def holds_rules(host: str, path: str) -> bool:
    """Whether this is a robots.txt, of the host itself or of another one that redirects to it."""
    fault = faults.by_host().get(host)
    return path == "/robots.txt" or (fault is not None and path in fault.holds_rules)


def crawl_delay_s(host: str) -> float | None:
    """What the host's robots.txt asks for between two requests, or None."""
    fault = faults.by_host().get(host)
    return fault.crawl_delay_s if fault is not None else None


def loaded_by(host: str, path: str) -> str | None:
    """The page whose script asks for this, "*" if any page of the host does; None: it is no part of a page."""
    number = org_number(host)
    if number is None or kind_of(number) is not Kind.FETCHED:
        return None
    if path == "/app.js":
        return "*"
    if path.startswith("/data/") and path.endswith(".json"):
        return path.removeprefix("/data").removesuffix(".json")
    return None


def all_seeds(hosts: int = 20) -> list[str]:
    """The seeds of the whole tiny web."""
    return [f"http://{org_host(number)}/" for number in range(hosts)] + [
        seed for fault in faults.every() for seed in fault.seeds
    ]


def demo_seeds() -> list[str]:
    """A selection that a crawl at delay 0.5 s ends within a minute: some organisations and the quick faults."""
    orgs = [f"http://{org_host(number)}/" for number in range(DEMO_HOSTS)]
    return orgs + [seed for fault in faults.select(DEMO_FAULTS) for seed in fault.seeds]
