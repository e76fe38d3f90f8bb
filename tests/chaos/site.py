"""The web that chaos crawls, the time limits it is crawled with, and what its generator says must come of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.facts import Kind, kind_of, org_host, org_number
from curtsy.tinyweb.pages import OrgSite, Shape

HOSTS, PAGES = 12, 14
DELAY_S = 0.25
SLOT_S = 3.0
#: hosts whose URLs all end within seconds, in the same way however often a request is repeated
FAULTS = (
    "robots-disallow", "robots-404", "robots-redirect-host", "robots-elsewhere", "redirect-chain", "redirect-loop",
    "redirect-host", "redirect-target", "retry-after-seconds", "flapping-500", "gone", "refused", "noindex",
    "duplicates", "hang", "connection-close", "keepalive-resend", "cookie-redirect", "sitemap-index",
    "gzip",
)  # fmt: skip
#: everything short: after a kill a host rests for seconds, not for half a minute
SETTINGS = f"""
slot_s = {SLOT_S}
fetch_timeout_s = 1.2
connect_timeout_s = 1.0
start_slack_s = 0.5
slot_margin_s = 0.5
url_lease_s = 3
heartbeat_s = 1
commit_s = 0.4
drain_s = 2
max_attempts = 4
backoff_s = 0.2
backoff_cap_s = 1
max_adaptive_delay_s = 0.5
retry_after_cap_s = 5
host_patience_s = 120
log_level = "info"
"""
#: in rounds with a browser, which takes seconds to start under load
RENDER_SLOT_S = 12.0
RENDER_SETTINGS = f"""
render_timeout_s = 10
render_slot_s = {RENDER_SLOT_S}
render_concurrency = 3
render_recycle_pages = 8
api_renderers = ["playwright"]
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A web, and what of it must be found."""

    hosts: int = HOSTS
    pages: int = PAGES
    faults: tuple[str, ...] = FAULTS
    #: only these organisations are crawled; None: all
    numbers: tuple[int, ...] | None = None
    #: pages that say nothing without their scripts are shown in a browser
    render: bool = False
    delay_s: float = DELAY_S
    per_host: int = 1

    def start(self, log: Path) -> TinyWeb:
        return TinyWeb.start(hosts=self.hosts, pages=self.pages, faults=self.faults, log=log)

    def seeds(self, web: TinyWeb) -> list[str]:
        """Those of its organisations, and of all hosts with faults."""
        known = set(self.organisations())
        hosts = {seed: seed.partition("//")[2].partition("/")[0] for seed in web.seeds}
        return [seed for seed in web.seeds if org_number(hosts[seed]) is None or hosts[seed] in known]

    def organisations(self) -> list[str]:
        return [org_host(number) for number in self.numbers or range(self.hosts)]

    @property
    def settings(self) -> str:
        own = f"delay_s = {self.delay_s}\nper_host = {self.per_host}\n"
        return own + SETTINGS + (RENDER_SETTINGS if self.render else "")

    def in_browser(self, url: str) -> bool:
        """Is this page one of a host that says nothing without its scripts, in a round that has a browser?"""
        number = org_number(url.partition("//")[2].partition("/")[0])
        return self.render and number is not None and kind_of(number) in (Kind.SCRIPT, Kind.FETCHED)

    def pages_of_organisations(self) -> set[str]:
        """Every page that the generator has and robots.txt allows."""
        shape = Shape(pages=self.pages)
        return {f"http://{host}{path}" for host in self.organisations() for path in OrgSite(host, shape).paths}


#: without a delay: pages enough that every trouble meets them
FAST = {n: Site(hosts=4, pages=400, delay_s=0.0, per_host=n) for n in (1, 4, 16)}
#: three hosts that are filled by scripts beside three that are not; what takes its time is left out
RENDERED = Site(
    15, 6, ("robots-disallow", "redirect-host", "flapping-500", "gone", "refused", "duplicates", "connection-close"),
    numbers=(0, 1, 4, 6, 9, 14), render=True,
)  # fmt: skip
#: for the short form
SMALL_RENDERED = Site(10, 4, ("robots-disallow", "gone", "refused"), numbers=(0, 1, 4, 2, 3, 9), render=True)
