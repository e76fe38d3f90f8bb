"""Was anything lost, doubled, damaged or impolite? Read from tables, files and the server's log, past the product."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from curtsy.tinyweb.accesslog import read
from curtsy.tinyweb.politeness_check import judge
from tests.chaos.crawler import Crawler
from tests.chaos.metronome import Stall, as_early_as_can_be
from tests.chaos.site import Site

URLS = "SELECT url, state, reason FROM urls"
#: of a page that no script has filled
EMPTY = b'<div id="root"></div>'
PAGES = (
    "SELECT p.url, p.sha256, s.name, p.body_offset, p.body_length, p.same_as, p.fp, p.crawl "
    "FROM pages p LEFT JOIN segments s ON s.n = p.segment"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What an undisturbed crawl of the same web ends with."""

    #: URL -> state
    urls: dict[str, str]
    #: URL -> sha256 of the body
    pages: dict[str, str]


@dataclass(slots=True, kw_only=True)
class Findings:
    """Everything that is wrong after a round; all empty when nothing is."""

    pages: int = 0
    lost: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    #: politeness, by the server's log
    violations: list[str] = field(default_factory=list)
    #: bodies, WARC files, ledger, audit
    damage: list[str] = field(default_factory=list)
    #: of them, hosts that may look early only because the machine stood still
    stalled: list[str] = field(default_factory=list)
    longest_stall_ms: float = 0.0
    #: pages that a browser showed
    rendered: int = 0
    largest_shortfall_ms: float = 0.0
    largest_overlap_ms: float = 0.0

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicates or self.violations or self.damage)

    def lines(self) -> list[str]:
        kinds = ("lost", "duplicates", "violations", "damage")
        return [f"{kind}: {line}" for kind in kinds for line in getattr(self, kind)]


def baseline(crawler: Crawler, web: Site) -> Baseline:
    urls = {url: state for url, state, _ in crawler.database.rows(URLS)}
    pages = {row[0]: bytes(row[1]).hex() for row in crawler.database.rows(PAGES)}
    missing = web.pages_of_organisations() - pages.keys()
    assert not missing, f"lost: the crawl lacks {sorted(missing)[:5]}"
    return Baseline(urls=urls, pages=pages)


def look(crawler: Crawler, web: Site, expected: Baseline, log: Path, stalls: list[Stall], *, stopped: bool) -> Findings:
    found = Findings()
    _urls(crawler, expected, found)
    _pages(crawler, web, expected, found)
    _ledger(crawler, found)
    _export(crawler, found)
    segments(crawler.data, found)
    politeness(log, web, stalls, found, stopped=stopped)
    audit = crawler.command("audit", "--json")
    if audit.returncode:
        said = crawler.command("audit").stdout + audit.stderr
        found.damage.append(f"audit exits {audit.returncode}: {said[-2000:]}")
    return found


def _urls(crawler: Crawler, expected: Baseline, found: Findings) -> None:
    rows = crawler.database.rows(URLS)
    states = {url: (state, reason) for url, state, reason in rows}
    found.lost += [f"{url} has no row" for url in sorted(expected.urls.keys() - states.keys())]
    found.lost += [f"{url} is still open" for url, (state, _) in states.items() if state == "open"]
    found.damage += [f"{url} is a row that no undisturbed crawl has" for url in states.keys() - expected.urls.keys()]
    for url, (state, reason) in states.items():
        wanted = expected.urls.get(url)
        if state not in ("open", wanted) and wanted is not None:
            found.lost.append(f"{url} ended as {state} {reason}, not as {wanted}")
    found.duplicates += [f"{url} has {n} rows" for url, n in Counter(url for url, _, _ in rows).items() if n > 1]


def _pages(crawler: Crawler, web: Site, expected: Baseline, found: Findings) -> None:
    rows = crawler.database.rows(PAGES)
    found.pages = len(rows)
    urls = Counter(row[0] for row in rows)
    found.lost += [f"{url} is no page" for url in sorted(expected.pages.keys() - urls.keys())]
    found.damage += [f"{url} is a page that no undisturbed crawl has" for url in urls.keys() - expected.pages.keys()]
    found.duplicates += [f"{url} is {n} pages" for url, n in urls.items() if n > 1]
    bodies = _bodies(crawler, web, rows, found)
    for url, digest, *_ in rows:
        stored = bytes(digest).hex()
        if stored != expected.pages.get(url, stored):
            found.damage.append(f"{url} has another sha256 than in the undisturbed crawl")
        if bodies.get(url) != stored:
            found.damage.append(f"{url}: the body in its segment has sha256 {bodies.get(url)}, not {stored}")


def _bodies(crawler: Crawler, web: Site, rows: list[tuple], found: Findings) -> dict[str, str]:  # type: ignore[type-arg]
    """URL -> sha256 of the body that stands in its segment, or in that of the page it is the same as."""
    digests: dict[str, str] = {}
    revisits: dict[str, str] = {}
    for url, _, name, offset, length, *_ in rows:
        try:
            with (crawler.data / "segments" / name).open("rb") as file:
                file.seek(offset)
                record = next(iter(ArchiveIterator(io.BytesIO(file.read(length)))))
            assert record.rec_headers.get_header("WARC-Target-URI") == url, "its record is that of another URL"
            if record.rec_type == "revisit":
                revisits[url] = record.rec_headers.get_header("WARC-Refers-To-Target-URI")
            else:
                body = record.content_stream().read()
                digests[url] = hashlib.sha256(body).hexdigest()
                rendering(url, body, web, found)
        except Exception as error:
            found.damage.append(f"{url}: its body cannot be read: {error!r}")
    return digests | {url: digests.get(original, "of a lost page") for url, original in revisits.items()}


def rendering(url: str, body: bytes, web: Site, found: Findings) -> None:
    """A page that says nothing without its scripts is stored as its scripts made it."""
    if web.in_browser(url):
        found.rendered += 1
        if EMPTY in body or b"<h1>" not in body:
            found.damage.append(f"{url} is stored without what its scripts draw")


def _ledger(crawler: Crawler, found: Findings) -> None:
    """The counts that the commit keeps are those of the rows."""
    rows = Counter((state, reason) for _, state, reason in crawler.database.rows(URLS))
    counts = {(s, r): n for s, r, n in crawler.database.rows("SELECT state, reason, n FROM crawl_counts") if n}
    added = counts.pop(("open", ""), 0)
    if counts != dict(rows):
        found.damage.append(f"the ledger says {counts}, the rows say {dict(rows)}")
    if added != sum(rows.values()):
        found.damage.append(f"the ledger says {added} URLs were added, there are {sum(rows.values())}")
    ((pages,),) = crawler.database.rows("SELECT pages FROM crawls")
    if pages != found.pages:
        found.damage.append(f"the crawl counts {pages} pages, there are {found.pages}")


def _export(crawler: Crawler, found: Findings) -> None:
    done = crawler.command("export", "--format", "jsonl")
    if done.returncode:
        found.damage.append(f"export exits {done.returncode}: {done.stderr.strip()[:500]}")
        return
    urls = Counter(json.loads(line)["url"] for line in done.stdout.splitlines())
    found.duplicates += [f"{url} is exported {n} times" for url, n in urls.items() if n > 1]
    if len(urls) != found.pages:
        found.damage.append(f"{len(urls)} pages are exported, there are {found.pages}")


def segments(data: Path, found: Findings) -> None:
    """Every file is a valid WARC, also those of processes that were killed."""
    files = sorted(str(path) for path in (data / "segments").glob("*.warc.gz"))
    done = subprocess.run(
        [sys.executable, "-m", "warcio.cli", "check", *files], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        found.damage.append(f"warcio check: {(done.stdout + done.stderr).strip()[-500:]}")


def politeness(log: Path, web: Site, stalls: list[Stall], found: Findings, *, stopped: bool) -> None:
    """Every host that was treated badly counts; where the machine stood still, that is said beside it."""
    lines = list(read(log))
    verdict = judge(lines, web.delay_s, starts_only=stopped, per_host=web.per_host)
    found.largest_shortfall_ms = verdict.largest_shortfall_ms
    found.largest_overlap_ms = 0.0 if stopped else verdict.largest_overlap_ms
    found.longest_stall_ms = max((ended - began for began, ended in stalls), default=0) / 1000
    guilty = [host for host in verdict.hosts if not host.ok]
    if guilty and stalls:
        earliest = as_early_as_can_be(lines, stalls)
        again = judge(earliest, web.delay_s, starts_only=stopped, per_host=web.per_host)
        polite = {host.host for host in again.hosts if host.ok}
        found.stalled += [host.host for host in guilty if host.host in polite]
    found.violations += [str(host) for host in guilty]
