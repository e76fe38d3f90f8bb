"""The dashboard over a large store, on SQLite and PostgreSQL: how long its lists and its overview take to answer."""

from __future__ import annotations

import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.plan import Plan
from bench.report import Bar, Section
from curtsy.core.model import Crawl, CrawlState, Failure, HostState, Page, Request, new_id
from curtsy.rules.urls import fingerprint
from curtsy.store import crawls, failures, hosts, pages, queues, requests
from curtsy.store.engine import Store
from curtsy.web.paging import encode
from tests.support.postgres_server import start_postgres

HOSTS = 2_000
#: one dead letter for so many pages
PAGES_PER_LETTER = 10
CAUSES = ("timeout", "server_error", "refused", "connection_lost", "no_such_host")
_CHUNK = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    crawl: Crawl
    pages: int
    #: number of the last page of another, small crawl: numbers go on behind it
    first: int


def fill(store: Store, n: int) -> Made:
    """A crawl that is running, with so many pages of the last hour, their requests, and dead letters."""
    now_ms = int(time.time() * 1000)
    begun_ms = now_ms - 3_500_000
    given = Crawl(id=new_id(), request_id="bench", state=CrawlState.RUNNING, created_ms=begun_ms, started_ms=begun_ms)
    crawl: Crawl = store.run(crawls.create, given)
    with store.read() as tx:
        first = int(tx.exec_driver_sql("SELECT coalesce(max(n), 0) FROM pages").scalar() or 0)
    names = [f"host-{number:05}.test" for number in range(HOSTS)]
    fence = first * 2 + 1
    for start in range(0, n, _CHUNK):
        some = range(start, min(n, start + _CHUNK))
        store.run(_chunk, crawl, names, some, fence, begun_ms, 3_400_000 / n)
    store.run(_rest, crawl, names, n)
    return Made(crawl=crawl, pages=n, first=first)


def _chunk(tx: Any, crawl: Crawl, names: list[str], some: range, fence: int, begun_ms: int, step_ms: float) -> None:
    made, log, letters = [], [], []
    for i in some:
        host, at_ms = names[i % HOSTS], begun_ms + int(i * step_ms)
        url = f"https://{host}/articles/{crawl.n}/{i}.html"
        fp = fingerprint(url)
        made.append(
            Page(
                id=pages.page_id(crawl.n, fp), crawl=crawl.n, fp=fp, url=url, host=host,
                status=200 if i % 50 else 203, fetched_ms=at_ms, depth=i % 7, content_type="text/html",
                title=f"Article {i} of {host}", size=20_000, fence=fence + i, request_id="bench",
            )
        )  # fmt: skip
        log.append(
            Request(
                fence=fence + i, crawl=crawl.n, host=host, url=url, start_ms=at_ms, end_ms=at_ms + 180, kind="page",
                status=200, delay_ms=1000,
            )
        )  # fmt: skip
        if not i % PAGES_PER_LETTER:
            letters.append(
                Failure(
                    id=f"{crawl.n}{i:012}", crawl=crawl.n, fp=fp, url=url + "?dead", host=host, at_ms=at_ms,
                    cause=CAUSES[i // PAGES_PER_LETTER % len(CAUSES)], attempts=4, fence=fence + i, request_id="bench",
                )
            )  # fmt: skip
    pages.insert(tx, made)
    requests.insert(tx, log)
    failures.insert(tx, letters)


def _rest(tx: Any, crawl: Crawl, names: list[str], n: int) -> None:
    crawls.add_pages(tx, {crawl.n: n})
    counts = {(crawl.n, "open", ""): n * 2, (crawl.n, "done", ""): n}
    crawls.add_counts(tx, counts | {(crawl.n, "failed", cause): n // PAGES_PER_LETTER // 5 for cause in CAUSES})
    queues.open_queues(tx, [(crawl.n, name, "batch", n // HOSTS) for name in names])
    hosts.upsert(tx, [HostState(host=name, failures=int(number % 40 == 0)) for number, name in enumerate(names)])


@contextmanager
def served(folder: Path, store_url: str) -> Iterator[int]:
    """The port of `curtsy serve` with one process."""
    environment = os.environ | {"CURTSY_STORE_URL": store_url, "CURTSY_API_RATE": "1000000"}
    log = folder / "serve.log"
    words = ["serve", "--port", "0", "--processes", "1", "--data-dir", str(folder / "data")]
    with log.open("wb") as err:
        process = subprocess.Popen([sys.executable, "-m", "curtsy", *words], stderr=err, env=environment)
    try:
        while not (found := re.search(r"Serving on http://[^:]+:(\d+)/", log.read_text("utf-8"))):
            if process.poll() is not None:
                raise RuntimeError(log.read_text("utf-8"))
            time.sleep(0.05)
        yield int(found[1])
    finally:
        process.terminate()
        process.wait(60)


def ask(port: int, path: str) -> float:
    """Milliseconds until the page is whole."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        begun = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:500]!r}")
        return (time.perf_counter() - begun) * 1000
    finally:
        connection.close()


def lists(made: Made) -> dict[str, str]:
    """What is measured -> where it is."""
    crawl, deep = f"/crawls/{made.crawl.id}", encode((made.first + made.pages * 9 // 10,))
    return {
        "pages, first 50": f"{crawl}/pages",
        "pages, 50 after the first 90 %": f"{crawl}/pages?cursor={deep}",
        "pages of one host": f"{crawl}/pages?host=host-00042.test",
        "pages with an unusual status": f"{crawl}/pages?status=203",
        "pages by words in title or URL": f"{crawl}/pages?q=article+9",
        "pages by words that occur nowhere": f"{crawl}/pages?q=nothing",
        "failures, first 50 and groups by cause": "/failures",
        "failures, groups by host": "/failures?by=host",
        "failures of one cause and their groups": "/failures?cause=timeout",
        "failures of one host": "/failures?host=host-00040.test",
        "failures of a crawl": f"{crawl}/failures",
    }


def others(made: Made) -> dict[str, str]:
    crawl = f"/crawls/{made.crawl.id}"
    return {
        "a crawl's progress": crawl,
        "a crawl's hosts": f"{crawl}/hosts",
        "a host with its timeline": "/hosts/host-00042.test",
        "list of hosts": "/hosts",
    }


def measured(port: int, path: str, repeats: int) -> list[float]:
    ask(port, path)  # what is read for the first time counts for nobody
    return [ask(port, path) for _ in range(max(3, repeats))]


def overview(port: int, repeats: int) -> list[float]:
    """Each a second after the one before: within a second everybody is shown the same."""
    ask(port, "/")  # the frontier is opened by the first who asks
    found = []
    for _ in range(max(3, repeats)):
        time.sleep(1.05)
        found.append(ask(port, "/"))
    return found


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    sections = []
    with tempfile.TemporaryDirectory(prefix="bench-dashboard-") as name:
        folder = Path(name)
        (folder / "sqlite").mkdir()
        sections.append(_figures(plan, say, "SQLite", folder / "sqlite", f"sqlite:///{folder / 'sqlite' / 'c.sqlite'}"))
        with start_postgres(folder / "postgres") as server:
            (folder / "pg").mkdir()
            sections.append(_figures(plan, say, "PostgreSQL", folder / "pg", server.create_database("bench")))
    return sections


def _figures(plan: Plan, say: Callable[[str], None], kind: str, folder: Path, url: str) -> Section:
    with Store.open(url) as store:
        fill(store, max(1, plan.shown_pages // 100))
        _settle(store)
        with served(folder, url) as port:
            small = overview(port, plan.repeats)
        say(f"{kind}: {plan.shown_pages:,} pages ...")
        made = fill(store, plan.shown_pages)
        _settle(store)
    with served(folder, url) as port:
        large = overview(port, plan.repeats)
        shown = {what: measured(port, path, plan.repeats) for what, path in lists(made).items()}
        more = {what: measured(port, path, plan.repeats) for what, path in others(made).items()}
    times = {"overview": large, **shown, **more}
    rows = tuple((what, f"{statistics.median(ms):.0f}", f"{max(ms):.0f}") for what, ms in times.items())
    rows += (("overview, with 1 % of the pages", f"{statistics.median(small):.0f}", f"{max(small):.0f}"),)
    bars = (
        Bar(what=f"slowest list on {kind}, ms", value=max(map(statistics.median, shown.values())), limit=300),
        Bar(
            what=f"overview on {kind}: all pages / 1 % of them",
            value=statistics.median(large) / statistics.median(small),
            limit=2.0,
        ),
    )
    text = (
        f"`curtsy serve` has one process. The store has {plan.shown_pages:,} pages and requests of one running crawl, "
        f"{HOSTS:,} hosts and {plan.shown_pages // PAGES_PER_LETTER:,} dead letters. Times are those of whole "
        "HTML pages over loopback."
    )
    return Section(
        title=f"The dashboard on {kind}", text=text, head=("page", "median, ms", "longest, ms"), rows=rows, bars=bars
    )


def _settle(store: Store) -> None:
    """PostgreSQL would make its statistics by itself in time; SQLite has none of a running store."""
    if not store.where.startswith("sqlite"):
        store.run(lambda tx: tx.exec_driver_sql("ANALYZE"))
