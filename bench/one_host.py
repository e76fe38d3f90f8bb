"""One host without a delay, beside as many pages on many hosts, a serial curl loop and Scrapy."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench import contestants, distant, report, site
from bench.contestants import PEERS, Contestant, Result, crawl_once, median_ms
from bench.plan import Plan, serve
from bench.report import Bar, Section
from bench.site import Site, path_of

MANY = "Curtsy, many hosts"
SIXTEEN = "Curtsy, one host, --per-host 16"
ONE = "Curtsy, one host, --per-host 1"
SERIAL = "serial curl loop"
SCRAPY = "Scrapy, one host, 16 per domain"
DISTANT = "Curtsy, one distant host, --per-host 1"
SERIAL_DISTANT = "serial curl loop, distant host"
#: pages of each of the many hosts
_PAGES = 100
#: until the distant host answers
_MS = 10


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    pages = plan.one_host_pages
    with (
        serve(max(1, pages // _PAGES), _PAGES, plan.port) as many,
        serve(1, pages, plan.port + 1) as one,
        _distant(max(10, pages // 2), plan.port + 2) as far,
    ):
        field = [
            (contestants.curtsy(name=MANY), many),
            (contestants.curtsy(name=SIXTEEN, per_host=16), one),
            (contestants.curtsy(name=ONE, per_host=1), one),
            (serial_loop(SERIAL), one),
            (contestants.curtsy(name=DISTANT, per_host=1), far),
            (serial_loop(SERIAL_DISTANT), far),
        ]
        if plan.peers is not None:
            field.append((scrapy(plan.peers), one))
        results = _compete(field, plan.repeats, say)
    text = (
        f"{pages:,} pages of about 20 KB, the delay is 0. The many hosts have {_PAGES} pages each. CPU and pages per "
        "second count from the start of each crawler to its end. "
        f"Values are medians of {plan.repeats} interleaved repeats. The serial loop gets a list of all URLs, keeps one "
        "connection, and neither parses nor stores a page: on one machine it gets a page in less time than a crawler "
        f"needs to read it. The distant host answers after {_MS} ms, as servers on the Internet do, and has half "
        "of the pages. The start of Curtsy counts, so the bar needs a crawl of some seconds."
    )
    section = report.crawl_section(f"One host x {pages:,} pages", text, [one for one, _ in field], results)
    return [replace(section, bars=tuple(_bars(results)))]


def _bars(results: dict[str, list[Result]]) -> list[Bar]:
    rate = {name: statistics.median(result.pages_per_s for result in found) for name, found in results.items()}
    bars = [
        Bar(what="one host / many hosts, pages/s", value=rate[SIXTEEN] / rate[MANY], limit=0.6, at_least=True),
        Bar(
            what="one host / many hosts, CPU per page",
            value=median_ms(results[SIXTEEN]) / median_ms(results[MANY]),
            limit=1.25,
        ),
        Bar(
            what="distant host, one request at a time / serial curl loop, pages/s",
            value=rate[DISTANT] / rate[SERIAL_DISTANT],
            limit=0.7,
            at_least=True,
        ),
    ]
    if SCRAPY in rate:
        bars.append(Bar(what="Curtsy / Scrapy, pages/s", value=rate[SIXTEEN] / rate[SCRAPY], limit=8, at_least=True))
    return bars


@contextmanager
def _distant(pages: int, port: int) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="curtsy-bench-site-") as folder:
        made = site.write(Path(folder) / "site", hosts=1, pages=pages, port=port)
        with distant.serving(made, _MS):
            yield made


def serial_loop(name: str) -> Contestant:
    def command(made: Site, folder: Path) -> Sequence[str]:
        urls = folder / "urls.txt"
        urls.write_text("\n".join(made.origin(0) + path_of(page) for page in range(made.pages)))
        return [sys.executable, str(PEERS / "serial_loop.py"), str(urls)]

    return Contestant(name=name, command=command, note="pycurl; a list of URLs, one kept connection, nothing else")


def scrapy(python: str) -> Contestant:
    script = [python, str(PEERS / "scrapy_spider.py")]
    return Contestant(
        name=SCRAPY,
        command=lambda _, folder: [*script, str(folder / "seeds.txt"), "--robots", "--per-domain", "16"],
        note="CONCURRENT_REQUESTS_PER_DOMAIN=16, its LinkExtractor, robots.txt obeyed; stores nothing",
    )


def _compete(
    field: Sequence[tuple[Contestant, Site]], repeats: int, say: Callable[[str], None]
) -> dict[str, list[Result]]:
    results: dict[str, list[Result]] = {contestant.name: [] for contestant, _ in field}
    for repeat in range(repeats):
        for contestant, made in field:
            folder = Path(tempfile.mkdtemp(prefix="curtsy-bench-"))
            try:
                result = crawl_once(contestant, made, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            results[contestant.name].append(result)
            say(
                f"  {repeat + 1}/{repeats} {contestant.name}: {result.cpu_ms_per_page:.3f} ms of CPU per page, "
                f"{result.pages_per_s:.0f} pages/s"
            )
    return results
