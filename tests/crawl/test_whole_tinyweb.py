"""One crawl over the whole tiny web with its profile, judged from every side: the ends, the audit, the server's log."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from warcio.checker import Checker

from curtsy.rules.urls import normalise
from curtsy.tinyweb import TinyWeb, faults, politeness_check
from curtsy.tinyweb.accesslog import read
from curtsy.tinyweb.faults.registry import FaultHost
from curtsy.tinyweb.web import Web

with warnings.catch_warnings():
    # Importing the package warns of its own older names.
    warnings.simplefilter("ignore")
    from fastwarc.warc import ArchiveIterator as FastIterator

pytestmark = pytest.mark.timeout(420)

DELAY_S = 0.5
LIMIT_S = 300
FIELDS = {"url", "status", "fetched_at", "content_type", "title", "sha256", "depth", "segment"}


@dataclass(frozen=True, slots=True)
class Whole:
    """The crawl, once it has ended."""

    folder: Path
    told: dict[str, Any]
    code: int
    errors: str
    took_s: float
    log: Path

    def rows(self, query: str) -> list[Any]:
        with closing(sqlite3.connect(self.folder / "data" / "curtsy.sqlite")) as db:
            return db.execute(query).fetchall()

    def ends(self) -> dict[str, str]:
        """URL -> "state" or "state reason"; open URLs of dead hosts by their host's reason."""
        dead = dict(self.rows("SELECT host, reason FROM queues WHERE state = 'dead'"))
        found = {}
        for url, host, state, reason in self.rows("SELECT url, host, state, reason FROM urls"):
            state, reason = ("failed", dead[host]) if state == "open" and host in dead else (state, reason)
            found[url] = f"{state} {reason}".strip()
        return found


def command(folder: Path, *words: str, data: str = "data") -> subprocess.CompletedProcess[str]:
    options = ["--config", "tinyweb.toml", "--data-dir", data]
    return subprocess.run(
        [sys.executable, "-m", "curtsy.cli", *words, *options],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def crawl(folder: Path, *words: str, **web_of: Any) -> Whole:
    log = folder / "access.log"
    with TinyWeb.start(log=log, **web_of) as web:
        (folder / "seeds.txt").write_text("\n".join(web.seeds), encoding="utf-8")
        began = time.monotonic()
        ended = command(folder, "crawl", "--from", "seeds.txt", "--resolve", web.resolve_rule, "--json", *words)
        took_s = time.monotonic() - began
    assert ended.returncode in (0, 1), ended.stderr
    return Whole(folder, json.loads(ended.stdout), ended.returncode, ended.stderr, took_s, log)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    folder = tmp_path_factory.mktemp("whole")
    yield crawl(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def lines(whole: Whole) -> list[dict[str, Any]]:
    """The exported pages."""
    done = command(whole.folder, "export", "--format", "jsonl", "--out", "pages.jsonl")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (whole.folder / "pages.jsonl").read_text("utf-8").splitlines()]


def complaints(said: str) -> list[str]:
    """What is no line of progress."""
    return [line for line in said.splitlines() if " pages, " not in line]


def test_it_ends_by_itself_within_five_minutes(whole: Whole) -> None:
    print(f"took {whole.took_s:.0f} s")
    assert whole.told["state"] == "finished"
    assert whole.took_s < LIMIT_S
    assert not complaints(whole.errors)


def test_every_url_is_done_skipped_with_a_reason_or_a_dead_letter_with_a_cause(whole: Whole) -> None:
    assert whole.told["pending"] == 0
    for end in whole.ends().values():
        state, _, reason = end.partition(" ")
        assert state == "done" or (state in ("skipped", "failed") and reason), end
    assert whole.code == 1
    assert all(whole.told["failed"].values())


@pytest.mark.parametrize("fault", [fault for fault in faults.every() if fault.ends], ids=lambda fault: fault.name)
def test_every_fault_ends_as_declared(whole: Whole, fault: FaultHost) -> None:
    ends = whole.ends()
    for path, allowed in fault.ends.items():
        end = ends.get(normalise(f"http://{fault.host}{path}") or "", "never met")
        assert end in allowed or end.partition(" ")[0] in allowed, f"{path}: {end!r} is not {' or '.join(allowed)}"


def test_organisations_are_crawled_whole(whole: Whole) -> None:
    web, done = Web(hosts=20, fault_names=()), {url for url, end in whole.ends().items() if end == "done"}
    for host in web.org_hosts:
        site = web.site(host)
        assert site.org is not None
        listed = set(re.findall("<loc>(.*?)</loc>", site.org.sitemap()))
        assert listed
        assert {url for url in done if url.startswith(f"http://{host}/")} == listed


def test_only_hosts_that_never_answer_are_given_up(whole: Whole) -> None:
    dead = {host.partition(".")[0] for (host,) in whole.rows("SELECT host FROM queues WHERE state = 'dead'")}
    # Nobody speaks TLS on redirect-https; its plain pages are done before.
    silent = {"robots-500", "robots-429", "robots-timeout", "redirect-https"}
    # What ends first where a page hangs, its tries or the patience with its host, is a matter of seconds.
    hanging = {fault.name for fault in faults.every() if "failed host_unreachable" in chain(*fault.ends.values())}
    assert silent <= dead <= silent | hanging
    ends = whole.ends()
    assert ends["http://redirect-https.tinyweb.test/two"] == "done"
    assert ends["https://redirect-https.tinyweb.test/secure"] == "failed host_unreachable"


def test_no_host_has_more_urls_than_allowed(whole: Whole) -> None:
    added = dict(whole.rows("SELECT host, count(*) FROM urls GROUP BY host"))
    assert max(added.values()) == 200
    assert added["sitemap-50000.tinyweb.test"] == 200


def test_the_counts_add_up(whole: Whole) -> None:
    told, ends = whole.told, whole.ends()
    states = Counter(end.partition(" ")[0] for end in ends.values())
    assert told["done"] == states["done"]
    assert told["done"] + sum(told["skipped"].values()) + sum(told["failed"].values()) == len(ends)
    assert Counter(end.partition(" ")[2] for end in ends.values() if end.startswith("failed")) == told["failed"]
    assert Counter(end.partition(" ")[2] for end in ends.values() if end.startswith("skipped")) == told["skipped"]
    kept = sum(end == "done" for end in ends.values())
    assert told["pages"] == kept == whole.rows("SELECT count(*) FROM pages")[0][0]
    dead = [end for end in ends.values() if end in ("failed host_unreachable", "failed robots_unreachable")]
    assert whole.rows("SELECT count(*) FROM failures")[0][0] + len(dead) == states["failed"]
    shown = command(whole.folder, "status", "--json")
    status = json.loads(shown.stdout)
    assert {name: status[name] for name in status.keys() & told.keys()} == {
        name: told[name] for name in status.keys() & told.keys()
    }
    assert {"pages", "done", "skipped", "failed"} <= status.keys() & told.keys()


def knows_every_request(crawl: Whole, verdict: dict[str, Any]) -> None:
    """All that the server saw. One without an answer may be in our log alone: the server had just hung up, or slept."""
    unseen = verdict["requests"] - len(list(read(crawl.log)))
    ((unanswered,),) = crawl.rows("SELECT count(*) FROM requests WHERE status = 0")
    assert 0 <= unseen <= unanswered


def test_audit_finds_nothing_and_knows_every_request(whole: Whole) -> None:
    done = command(whole.folder, "audit", "--json")
    verdict = json.loads(done.stdout)
    assert done.returncode == 0
    counted = ("overlaps", "early", "robots_violations", "presumed", "unaccounted", "gaps")
    assert {name: verdict[name] for name in counted} == dict.fromkeys(counted, 0)
    assert verdict["min_gap_s"] >= DELAY_S
    knows_every_request(whole, verdict)


def test_the_servers_own_log_is_clean(whole: Whole) -> None:
    verdict = politeness_check.judge(whole.log, DELAY_S)
    print(
        f"{verdict.requests} requests, largest overlap {verdict.largest_overlap_ms:.1f} ms, "
        f"largest shortfall {verdict.largest_shortfall_ms:.1f} ms"
    )
    summary = verdict.summary()
    assert verdict.ok, summary
    assert verdict.before_robots == 0


#: hosts with 200 URLs: at half a second each they alone would take as long as the whole
LONG = {"trap-calendar", "links-10000", "sitemap-50000"}


def test_two_processes_do_the_same_as_one(tmp_path: Path) -> None:
    """Judged from every side too, without the hosts that are long."""
    chosen = [fault for fault in faults.every() if fault.name not in LONG]
    both = crawl(tmp_path, "--processes", "2", hosts=4, faults=[fault.name for fault in chosen])
    print(f"took {both.took_s:.0f} s")
    assert (both.told["state"], both.told["pending"], complaints(both.errors)) == ("finished", 0, [])
    ends = both.ends()
    for fault in chosen:
        for path, allowed in fault.ends.items():
            end = ends.get(normalise(f"http://{fault.host}{path}") or "", "never met")
            assert end in allowed or end.partition(" ")[0] in allowed, f"{fault.name}{path}: {end!r}, not {allowed}"
    assert both.told["pages"] == sum(end == "done" for end in ends.values())
    assert both.rows("SELECT count(*) FROM pages") == [(both.told["pages"],)]
    # Each process writes a segment of its own; one that comes late may find that every host has an owner who keeps up.
    assert both.rows("SELECT count(DISTINCT segment) FROM pages WHERE segment IS NOT NULL") in ([(1,)], [(2,)])
    verdict = json.loads(command(tmp_path, "audit", "--json").stdout)
    counted = ("overlaps", "early", "robots_violations", "presumed", "unaccounted", "gaps")
    assert {name: verdict[name] for name in counted} == dict.fromkeys(counted, 0)
    knows_every_request(both, verdict)
    seen = politeness_check.judge(both.log, DELAY_S)
    assert seen.ok, seen.summary()


#: the start of the request that came before
BEFORE = "(SELECT max(b.start_ms) FROM requests b WHERE b.host = requests.host AND b.start_ms < requests.start_ms)"


@pytest.mark.parametrize(
    ("count", "change"),
    [
        ("overlaps", "end_ms = end_ms + 60000"),
        ("early", f"start_ms = {BEFORE} + 100, end_ms = {BEFORE} + 101"),
        ("robots_violations", "url = 'http://robots-disallow.tinyweb.test/nocurtsy'"),
    ],
)
def test_an_impolite_log_makes_audit_fail(whole: Whole, count: str, change: str) -> None:
    data = whole.folder / f"impolite-{count}"
    data.mkdir()
    shutil.copy(whole.folder / "data" / "curtsy.sqlite", data)
    second = (
        "SELECT fence FROM requests WHERE host = 'robots-disallow.tinyweb.test' AND kind = 'p' "
        "ORDER BY start_ms LIMIT 1 OFFSET 1"
    )
    with closing(sqlite3.connect(data / "curtsy.sqlite")) as db:
        db.execute(f"UPDATE requests SET {change} WHERE fence = ({second})")
        db.commit()
    done = command(whole.folder, "audit", "--json", data=data.name)
    assert done.returncode == 1
    assert json.loads(done.stdout)[count] > 0


def test_the_export_has_one_whole_line_per_page(whole: Whole, lines: list[dict[str, Any]]) -> None:
    assert len(lines) == whole.told["pages"]
    assert {line["url"] for line in lines} == {url for url, end in whole.ends().items() if end == "done"}
    for line in lines:
        assert line.keys() >= FIELDS
        assert line["segment"]
        assert len(line["sha256"]) == 64
        assert line["status"] // 100 == 2


def test_bodies_are_what_the_server_sent(whole: Whole, lines: list[dict[str, Any]]) -> None:
    """The generator says what each organisation's page is; its digest is that of the page."""
    web = Web(hosts=20, fault_names=())
    checked = 0
    for line in lines:
        _, _, host, path = line["url"].split("/", 3)
        site = web.site(host)
        if site.org is not None:
            answer = site.org.answer("/" + path)
            body = answer.wire[len(answer.head) :]
            body = gzip.decompress(body) if b"Content-Encoding: gzip" in answer.head else body
            assert hashlib.sha256(body).hexdigest() == line["sha256"], line["url"]
            checked += 1
    assert checked > 500


def test_segments_are_valid_and_hold_every_body(whole: Whole, lines: list[dict[str, Any]]) -> None:
    segments = sorted((whole.folder / "data" / "segments").rglob("*.warc.gz"))
    assert segments
    assert Checker(SimpleNamespace(inputs=[str(path) for path in segments], verbose=False)).process_all() == 0
    stored: dict[str, str] = {}
    others: list[str] = []
    kinds: Counter[str] = Counter()
    for path in segments:
        with open(path, "rb") as file:
            for record in FastIterator(file, parse_http=True):
                kinds[str(record.record_type)] += 1
                if str(record.record_type) == "response" and record.http_headers.status_code >= 300:
                    others.append(record.headers["WARC-Target-URI"])
                elif str(record.record_type) == "response":
                    body = record.reader.read()
                    body = gzip.decompress(body) if "Content-Encoding" in record.http_headers else body
                    stored[record.headers["WARC-Target-URI"]] = hashlib.sha256(body).hexdigest()
    twins = {line["url"] for line in lines if line["same_as"]}
    assert {line["url"]: line["sha256"] for line in lines if line["url"] not in twins} == stored
    assert {"http://error-500.tinyweb.test/error", "http://gone.tinyweb.test/gone"} <= set(others)
    assert kinds["response"] + kinds["revisit"] == len(lines) + len(others)
    assert kinds["revisit"] == len(twins) > 0
    assert kinds["warcinfo"] == len(segments)
    assert kinds["request"] == kinds["metadata"] == len(lines) + len(others)
