"""Was anything lost, doubled, damaged or impolite, in any crawl of a fleet? Read past the product."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator

from tests.chaos.findings import Findings, politeness, rendering, segments
from tests.chaos.fleet.orders import Desk, Order
from tests.chaos.fleet.troop import Troop
from tests.chaos.metronome import Stall
from tests.chaos.site import Site

CRAWLS = "SELECT n, id, state, pages FROM crawls"
URLS = "SELECT crawl, url, state, reason FROM urls"
PAGES = (
    "SELECT p.crawl, p.url, p.sha256, s.name, p.body_offset, p.body_length "
    "FROM pages p LEFT JOIN segments s ON s.n = p.segment"
)
RECORDS = "SELECT crawl, url FROM records"
FAILED_STAGES = "SELECT crawl, stage, url, cause FROM failures WHERE stage IN ('extract', 'score', 'store')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What an undisturbed fleet ends with, for each order."""

    #: order -> URL -> state
    urls: dict[str, dict[str, str]]
    #: order -> URL -> sha256 of the body
    pages: dict[str, dict[str, str]]


class Ledger:
    """The rows of all crawls, by the name of the order."""

    def __init__(self, troop: Troop, desk: Desk) -> None:
        names = {id: name for name, id in desk.ids.items()}
        crawls = troop.database.rows(CRAWLS)
        self.name_of: dict[int, str] = {n: names.get(id, f"crawl {n}") for n, id, _, _ in crawls}
        self.states = {self.name_of[n]: state for n, _, state, _ in crawls}
        self.counted = {self.name_of[n]: pages for n, _, _, pages in crawls}
        self.strangers = [id for _, id, _, _ in crawls if id not in names]
        self.urls = self._by_name(troop.database.rows(URLS))
        self.pages = self._by_name(troop.database.rows(PAGES))
        self.records = self._by_name(troop.database.rows(RECORDS))

    def _by_name(self, rows: list[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
        found = defaultdict(list)
        for crawl, *rest in rows:
            found[self.name_of[crawl]].append(tuple(rest))
        return found


def baseline(troop: Troop, desk: Desk, site: Site) -> Baseline:
    ledger = Ledger(troop, desk)
    urls = {name: {url: state for url, state, _ in rows} for name, rows in ledger.urls.items()}
    pages = {name: {row[0]: bytes(row[1]).hex() for row in rows} for name, rows in ledger.pages.items()}
    # What the generator has must be there, whoever disturbed this fleet.
    missing = site.pages_of_organisations() - pages.get("all", {}).keys()
    assert not missing, f"lost: {sorted(missing)[:5]} are no pages"
    return Baseline(urls=urls, pages=pages)


def look(
    troop: Troop, desk: Desk, orders: list[Order], site: Site, expected: Baseline, stalls: list[Stall], *, stopped: bool
) -> Findings:
    found = Findings()
    ledger = Ledger(troop, desk)
    found.duplicates += [f"crawl {id} is of no order" for id in ledger.strangers]
    bodies = _bodies(troop.data, site, [row for rows in ledger.pages.values() for row in rows], found)
    for order in orders:
        _urls(order.name, ledger, expected.urls[order.name], found)
        _pages(order.name, ledger, expected.pages[order.name], bodies, found)
        _records(order, ledger, found)
    _outbox(troop, ledger, found)
    _counts(troop, ledger, found)
    _export(troop, desk, ledger, found)
    segments(troop.data, found)
    politeness(troop.folder / "access.log", site, stalls, found, stopped=stopped)
    audit = troop.command("audit")
    if audit.returncode:
        found.damage.append(f"audit exits {audit.returncode}: {(audit.stdout + audit.stderr)[-2000:]}")
    found.damage += desk.wrong
    return found


def _urls(name: str, ledger: Ledger, expected: dict[str, str], found: Findings) -> None:
    rows = ledger.urls[name]
    states = {url: (state, reason) for url, state, reason in rows}
    found.lost += [f"{name}: {url} has no row" for url in sorted(expected.keys() - states.keys())]
    found.damage += [f"{name}: {url} is a row that no undisturbed fleet has" for url in states.keys() - expected.keys()]
    for url, (state, reason) in states.items():
        if state != expected.get(url, state) or state == "open":
            found.lost.append(f"{name}: {url} is {state} {reason}, not {expected.get(url)}")
    found.duplicates += [f"{name}: {url} has {n} rows" for url, n in Counter(row[0] for row in rows).items() if n > 1]


def _pages(name: str, ledger: Ledger, expected: dict[str, str], bodies: dict[str, str], found: Findings) -> None:
    rows = ledger.pages[name]
    found.pages += len(rows)
    urls = Counter(row[0] for row in rows)
    found.lost += [f"{name}: {url} is no page" for url in sorted(expected.keys() - urls.keys())]
    found.damage += [f"{name}: {url} is a page that no undisturbed fleet has" for url in urls.keys() - expected.keys()]
    found.duplicates += [f"{name}: {url} is {n} pages" for url, n in urls.items() if n > 1]
    for url, digest, *_ in rows:
        stored = bytes(digest).hex()
        if stored != expected.get(url, stored):
            found.damage.append(f"{name}: {url} has another sha256 than in the undisturbed fleet")
        if bodies.get(url) != stored:
            found.damage.append(f"{name}: {url}: the body in its segment has sha256 {bodies.get(url)}, not {stored}")


def _bodies(data: Path, site: Site, rows: list[tuple[Any, ...]], found: Findings) -> dict[str, str]:
    """URL -> sha256 of the body that stands in a segment; the web answers all crawls the same."""
    digests: dict[str, str] = {}
    revisits: dict[str, str] = {}
    for url, _, name, offset, length in rows:
        try:
            with (data / "segments" / name).open("rb") as file:
                file.seek(offset)
                record = next(iter(ArchiveIterator(io.BytesIO(file.read(length)))))
            assert record.rec_headers.get_header("WARC-Target-URI") == url, "its record is that of another URL"
            if record.rec_type == "revisit":
                revisits[url] = record.rec_headers.get_header("WARC-Refers-To-Target-URI")
            else:
                body = record.content_stream().read()
                digests[url] = hashlib.sha256(body).hexdigest()
                rendering(url, body, site, found)
        except Exception as error:
            found.damage.append(f"{url}: its body cannot be read: {error!r}")
    return {url: digests.get(original, "of a lost page") for url, original in revisits.items()} | digests


def _records(order: Order, ledger: Ledger, found: Findings) -> None:
    """One of each page where a schema is named, none elsewhere."""
    wanted = {row[0] for row in ledger.pages[order.name]} if "schema" in order.wish else set()
    urls = Counter(url for (url,) in ledger.records[order.name])
    found.lost += [f"{order.name}: {url} has no record" for url in sorted(wanted - urls.keys())]
    found.damage += [f"{order.name}: {url} has a record and is no page" for url in sorted(urls.keys() - wanted)]
    found.duplicates += [f"{order.name}: {url} has {n} records" for url, n in urls.items() if n > 1]


def _outbox(troop: Troop, ledger: Ledger, found: Findings) -> None:
    rows = troop.database.rows("SELECT crawl, kind, state FROM outbox")
    found.lost += [f"{ledger.name_of[n]}: {kind} is still {state} in the outbox" for n, kind, state in rows]
    failed = troop.database.rows(FAILED_STAGES)
    found.lost += [f"{ledger.name_of[n]}: stage {stage} of {url} failed: {cause}" for n, stage, url, cause in failed]


def _counts(troop: Troop, ledger: Ledger, found: Findings) -> None:
    """The counts that the commit keeps are those of the rows."""
    rows = troop.database.rows("SELECT crawl, state, reason, n FROM crawl_counts")
    for number, name in ledger.name_of.items():
        counts = {(state, reason): n for crawl, state, reason, n in rows if crawl == number and n}
        added = counts.pop(("open", ""), 0)
        there = Counter((state, reason) for _, state, reason in ledger.urls[name])
        if counts != dict(there) or added != sum(there.values()):
            found.damage.append(f"{name}: the ledger says {counts} of {added}, the rows say {dict(there)}")
        if ledger.counted[name] != len(ledger.pages[name]):
            found.damage.append(f"{name} counts {ledger.counted[name]} pages, there are {len(ledger.pages[name])}")


def _export(troop: Troop, desk: Desk, ledger: Ledger, found: Findings) -> None:
    done = troop.command("export", desk.ids["all"], "--format", "jsonl")
    if done.returncode:
        found.damage.append(f"export exits {done.returncode}: {done.stderr.strip()[:500]}")
        return
    urls = Counter(json.loads(line)["url"] for line in done.stdout.splitlines())
    found.duplicates += [f"{url} is exported {n} times" for url, n in urls.items() if n > 1]
    if len(urls) != len(ledger.pages["all"]):
        found.damage.append(f"{len(urls)} pages are exported, there are {len(ledger.pages['all'])}")
