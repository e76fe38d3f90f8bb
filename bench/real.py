"""Real documentation sites from Debian packages: Curtsy beside wget -r, Scrapy's CrawlSpider and Crawlee.

The web server's log counts pages, the same way for every crawler: a page is an HTML URL that was answered with 200.
wget's pages of the same repeat are the measure of completeness.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import docs_sites, nginx
from bench.contestants import CRAWLEE, CURTSY, PEERS, SCRAPY, environment
from bench.measure import Run, RunFailed, run
from bench.plan import Plan
from bench.report import Bar, Section, number

PER_HOST = 8
TIMEOUT_S = 1200.0
WGET = "wget -r"
#: exit status of wget after an answer such as 404
_WGET_MISSED = 8
_WGET = f'wget "$@" || test $? = {_WGET_MISSED}'
#: elements that the others follow; by default wget also fetches style sheets, scripts and images
_TAGS = "a,area,frame,iframe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """The sites under measurement."""

    hosts: Sequence[str]
    port: int
    log: Path

    @property
    def seeds(self) -> list[str]:
        return [f"http://{host}:{self.port}/" for host in self.hosts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawler:
    name: str
    #: for a folder that has the file seeds.txt
    command: Callable[[Web, Path], Sequence[str]]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """One crawl, as the server's log shows it."""

    #: URLs answered with an HTML page
    pages: frozenset[str]
    requests: int
    run: Run

    @property
    def cpu_ms(self) -> float:
        return self.run.cpu_s * 1000 / max(len(self.pages), 1)

    @property
    def pages_per_s(self) -> float:
        return len(self.pages) / self.run.wall_s


def crawlers(python: str | None) -> list[Crawler]:
    """wget is the first: it says which pages there are."""
    field = [
        Crawler(name=WGET, command=_wget, note="one connection, no parser of HTML trees; writes files"),
        Crawler(name=CURTSY, command=curtsy_command, note="full durability, robots.txt, WARC; includes its Valkey"),
    ]
    if python is not None:
        field += [
            Crawler(
                name=f"{SCRAPY} CrawlSpider",
                command=lambda _web, folder: [python, str(PEERS / "crawl_spider.py"), str(folder / "seeds.txt")],
                note="one rule with its LinkExtractor; robots.txt obeyed; stores nothing",
            ),
            Crawler(
                name=CRAWLEE,
                command=lambda _web, folder: [
                    python, str(PEERS / "crawlee_crawler.py"), str(folder / "seeds.txt"), "--own-hosts",
                ],
                note="lexbor as parser, enqueue_links, memory storage, robots off as by default",
            ),
        ]  # fmt: skip
    return field


def curtsy_command(web: Web, folder: Path) -> Sequence[str]:
    rule = f"*.{docs_sites.DOMAIN}=127.0.0.1:{web.port}"
    options = ["--delay", "0", "--per-host", str(PER_HOST), "--resolve", rule, "--json"]
    return [sys.executable, "-m", "curtsy.cli", "crawl", "--from", "seeds.txt", *options]


def _wget(web: Web, folder: Path) -> Sequence[str]:
    options = ["-r", "-l", "inf", "-q", "-i", "seeds.txt", f"--follow-tags={_TAGS}", "-P", "files"]
    # Its names are not in the DNS: nginx also answers as a proxy.
    proxy = ["-e", "use_proxy=yes", "-e", f"http_proxy=http://127.0.0.1:{web.port}"]
    return ["sh", "-c", _WGET, "sh", *options, *proxy]


@contextmanager
def serving(packages: tuple[docs_sites.Package, ...], port: int) -> Iterator[Web]:
    with tempfile.TemporaryDirectory(prefix="curtsy-bench-docs-") as name:
        folder = Path(name)
        (folder / "sites").mkdir()
        hosts = docs_sites.link(packages, folder / "sites")
        log = folder / "requests.log"
        with nginx.serving_folder(folder / "sites", port, folder / "nginx", log=log):
            yield Web(hosts=hosts, port=port, log=log)


def crawl_once(crawler: Crawler, web: Web) -> Crawl:
    folder = Path(tempfile.mkdtemp(prefix="curtsy-bench-"))
    try:
        (folder / "seeds.txt").write_text("\n".join(web.seeds) + "\n")
        before = web.log.stat().st_size
        done = run(crawler.command(web, folder), folder=folder, env=environment(folder), timeout_s=TIMEOUT_S)
        with web.log.open() as log:
            log.seek(before)
            lines = log.read().splitlines()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Crawl(pages=pages_of(lines, web.hosts), requests=len(lines), run=done)


def pages_of(lines: Sequence[str], hosts: Sequence[str]) -> frozenset[str]:
    """HTML URLs of these hosts that were answered with 200, from lines of nginx's log."""
    found = set()
    for line in lines:
        url, status, kind = line.split(" ", 2)
        if status == "200" and kind.startswith("text/html") and url.partition("/")[0] in hosts:
            found.add(url)
    return frozenset(found)


def compete(field: Sequence[Crawler], web: Web, repeats: int, say: Callable[[str], None]) -> dict[str, list[Crawl]]:
    results: dict[str, list[Crawl]] = {crawler.name: [] for crawler in field}
    for repeat in range(repeats):
        for crawler in field:
            done = crawl_once(crawler, web)
            results[crawler.name].append(done)
            say(
                f"  {repeat + 1}/{repeats} {crawler.name}: {done.cpu_ms:.3f} ms of CPU per page, "
                f"{done.pages_per_s:.0f} pages/s, {len(done.pages)} pages, {done.requests} requests"
            )
    return results


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    if shutil.which("wget") is None:
        raise RunFailed("wget is missing. Install it (Debian: apt-get install wget), and try again.")
    try:
        docs_sites.fetch(docs_sites.PACKAGES[: plan.real_sites])
    except RunFailed as error:
        say(f"  The real sites are not measured. {error}")
        return []
    field = crawlers(plan.peers)
    packages = docs_sites.PACKAGES[: plan.real_sites]
    sections = []
    with serving(packages, plan.port) as web:
        sections.append(_section(f"Real sites: {len(packages)} manuals", field, compete(field, web, plan.repeats, say)))
    with serving(docs_sites.PACKAGES[:1], plan.port) as web:
        results = compete(field, web, plan.repeats, say)
        sections.append(_section("One real site: the manual of PostgreSQL", field, results, one=True))
    return sections


def _section(title: str, field: Sequence[Crawler], results: dict[str, list[Crawl]], *, one: bool = False) -> Section:
    known = results[WGET]
    head = ("crawler", "CPU ms per page", "pages/s", "pages", "wget's pages missing", "requests", "what it does")
    rows = tuple(_row(crawler, results[crawler.name], known) for crawler in field)
    text = (
        f"The manuals come from Debian packages, and nginx serves them over HTTP. The delay is 0, with at most "
        f"{PER_HOST} requests to a host at a time. A page is an HTML URL with status 200 in nginx's log. CPU is user "
        f"and system time of all processes of the crawler. Values are medians of {len(known)} interleaved repeats, "
        f"with the smallest and the largest in brackets. `wget` follows the elements {_TAGS.replace(',', ', ')}."
    )
    return Section(title=title, text=text, head=head, rows=rows, bars=_bars(results, one=one))


def _row(crawler: Crawler, crawls: Sequence[Crawl], known: Sequence[Crawl]) -> tuple[str, ...]:
    cpu = sorted(crawl.cpu_ms for crawl in crawls)
    return (
        crawler.name,
        f"**{statistics.median(cpu):.3f}** ({cpu[0]:.3f} to {cpu[-1]:.3f})",
        number(statistics.median(crawl.pages_per_s for crawl in crawls)),
        f"{statistics.median(len(crawl.pages) for crawl in crawls):,.0f}",
        f"{most_missing(crawls, known):,}",
        f"{statistics.median(crawl.requests for crawl in crawls):,.0f}",
        crawler.note,
    )


def most_missing(crawls: Sequence[Crawl], known: Sequence[Crawl]) -> int:
    """How many of wget's pages of the same repeat a crawler did not fetch, in its worst repeat."""
    return max(len(theirs.pages - ours.pages) for ours, theirs in zip(crawls, known, strict=True))


def _bars(results: dict[str, list[Crawl]], *, one: bool) -> tuple[Bar, ...]:
    median = {name: statistics.median(crawl.cpu_ms for crawl in crawls) for name, crawls in results.items()}
    ours, wget = results[CURTSY], results[WGET]
    fetched = 1 - most_missing(ours, wget) / max(len(wget[0].pages), 1)
    bars = [Bar(what="part of wget's pages that Curtsy fetched", value=fetched, limit=1, at_least=True)]
    scrapy = median.get(f"{SCRAPY} CrawlSpider")
    if scrapy is not None:
        limit = 5 if one else 7
        bars.append(
            Bar(what="Scrapy / Curtsy, CPU per page", value=scrapy / median[CURTSY], limit=limit, at_least=True)
        )
    if one:
        return tuple(bars)
    if CRAWLEE in median:
        bars.append(
            Bar(what="Crawlee / Curtsy, CPU per page", value=median[CRAWLEE] / median[CURTSY], limit=4, at_least=True)
        )
    rates = [statistics.median(crawl.pages_per_s for crawl in crawls) for crawls in (ours, wget)]
    bars += [
        Bar(what="Curtsy / wget -r, CPU per page", value=median[CURTSY] / median[WGET], limit=2),
        Bar(what="Curtsy / wget -r, pages/s", value=rates[0] / rates[1], limit=0.6, at_least=True),
    ]
    return tuple(bars)
