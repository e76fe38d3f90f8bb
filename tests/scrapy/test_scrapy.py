"""A Scrapy project on the frontier: polite by the server's log, over processes; nothing is lost by kill -9."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crawl_folder import SHORT
from waiting import wait_for

from curtsy.control.stored_audit import judged
from curtsy.core.settings import Settings
from curtsy.store import external_requests
from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb, politeness_check

SPIDER = Path(__file__).parent / "spider_orgs.py"
DELAY_S = 0.15


class Project:
    """A folder in which spiders run."""

    def __init__(self, path: Path, web: TinyWeb, **changes: Any) -> None:
        self.path, self.web = path, web
        self.settings = {"DATA_DIR": str(path / "data"), "DELAY_S": DELAY_S, **{k.upper(): v for k, v in SHORT.items()}}
        self.settings |= changes
        self._items = 0

    def start(self, *options: str, **arguments: str) -> subprocess.Popen[bytes]:
        self._items += 1
        command = [sys.executable, "-m", "scrapy", "runspider", str(SPIDER), "-a", f"port={self.web.port}"]
        command += ["-o", str(self.path / f"items-{self._items}.jsonl"), "-s", "LOG_LEVEL=INFO", *options]
        command += ["-s", "TELNETCONSOLE_ENABLED=0", "-s", 'ADDONS={"curtsy.scrapy.Addon": 100}']
        command += [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
        command += [part for name, value in self.settings.items() for part in ("-s", f"CURTSY_{name}={value}")]
        log = (self.path / f"run-{self._items}.log").open("wb")
        with log:
            return subprocess.Popen(command, cwd=self.path, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def run(self, *options: str, **arguments: str) -> None:
        assert self.start(*options, **arguments).wait(100) == 0, self.log()

    def log(self) -> str:
        return "\n".join(path.read_text()[-3000:] for path in sorted(self.path.glob("run-*.log")))

    def items(self) -> list[dict[str, Any]]:
        lines = [line for path in sorted(self.path.glob("items-*.jsonl")) for line in path.read_text().splitlines()]
        return [json.loads(line) for line in lines if line.endswith("}")]

    def asked(self) -> Counter[str]:
        return Counter(f"{line.host.partition(':')[0]}{line.path}" for line in self.web.requests())

    def store(self) -> Store:
        return Store.open(Settings(data_dir=self.path / "data").effective_store_url)

    def is_polite(self) -> bool:
        """By the server's log, and by our own."""
        assert self.web.log is not None
        with self.store() as store:
            verdict = judged(store, "curtsy")
        assert verdict.polite, verdict.findings
        assert verdict.external_requests == verdict.requests - verdict.presumed > 0
        return politeness_check.main([str(self.web.log), "--delay", str(DELAY_S)]) == 0


def project(tmp_path: Path, web: TinyWeb) -> Project:
    return Project(tmp_path, web)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What there is to find: by a crawl in peace, which is judged too."""
    path = tmp_path_factory.mktemp("peace")
    with TinyWeb.start(hosts=2, pages=10, faults=False, log=path / "web.log") as web:
        one = project(path, web)
        one.run("-s", "ROBOTSTXT_OBEY=1")
        asked = one.asked()
        assert one.is_polite()
        items = one.items()
    # As in any Scrapy project, a start page is not filtered, so a link to it is followed once more.
    twice = {place for place, many in asked.items() if many > 1}
    assert twice == {f"{host}/" for host in web.hosts}, "every other page once, robots.txt too"
    assert max(asked.values()) == 2
    assert len(asked) >= 20
    assert {item["by"] for item in items} == {"parse", "parse_page"}
    assert all(item["from"] for item in items if item["by"] == "parse_page"), "meta comes back as it was given"
    with one.store() as store, store.read() as tx:
        (run,) = external_requests.runs(tx)
    name = f"organisations port={web.port}"
    assert (run.name, run.state, run.open, run.held, run.failed) == (name, "finished", 0, 0, 0)
    return {item["url"].partition(".test:")[2].partition("/")[2] for item in items}


def paths_of(items: list[dict[str, Any]]) -> set[str]:
    return {item["url"].partition(".test:")[2].partition("/")[2] for item in items}


def test_what_a_killed_spider_had_in_hand_is_asked_again_and_nothing_is_lost(tmp_path: Path, pages: set[str]) -> None:
    with TinyWeb.start(hosts=2, pages=10, faults=False, log=tmp_path / "web.log") as web:
        one = project(tmp_path, web)
        killed = one.start("-s", "ROBOTSTXT_OBEY=1")
        wait_for(lambda: len(web.requests()) >= 8)
        killed.kill()
        killed.wait()
        before = one.asked()
        one.run("-s", "ROBOTSTXT_OBEY=1")
        assert one.is_polite(), "over the kill too"
        after = one.asked()
        # A killed feed may lack its last lines: what was asked tells it all.
        found = {place.partition("/")[2] for place in after} - {"robots.txt"}
    assert found == pages
    again = {place for place, many in after.items() if many > 1 and not place.endswith(("/", "/robots.txt"))}
    assert len(again) <= 4, (
        f"only what was in hand or behind its callback is asked twice: {again} of {sum(before.values())}"
    )


def test_two_processes_share_the_work_and_every_host_has_one_request_at_a_time(tmp_path: Path, pages: set[str]) -> None:
    with TinyWeb.start(hosts=2, pages=10, faults=False, log=tmp_path / "web.log") as web:
        one = project(tmp_path, web)
        both = [one.start("-s", "ROBOTSTXT_OBEY=1"), one.start("-s", "ROBOTSTXT_OBEY=1")]
        assert [process.wait(100) for process in both] == [0, 0], one.log()
        assert one.is_polite()
        asked = one.asked()
        assert paths_of(one.items()) == pages
    assert {many for place, many in asked.items() if not place.endswith(("/", "/robots.txt"))} == {1}
    assert {asked[f"{host}/"] for host in web.hosts} == {2}, "start pages are those of the run, not of each process"


def test_what_failed_for_good_is_a_dead_letter_and_replays_to_success(tmp_path: Path) -> None:
    """Pages that answer 500 when they are first asked for; Scrapy is told not to try again."""
    with TinyWeb.start(hosts=1, pages=10, faults=["flapping-500"], log=tmp_path / "web.log") as web:
        one = project(tmp_path, web)
        replays = 0
        while True:
            one.run("-s", "RETRY_ENABLED=0", hosts="flapping-500")
            with one.store() as store, store.read() as tx:
                letters = external_requests.failed(tx)
            if not letters:
                break
            assert {letter.cause for letter in letters} == {"status 500"}, one.log()
            replays += 1
            assert replays <= 3, "the start page, the pages behind it, and the link back"
            command = [sys.executable, "-m", "curtsy.cli", "guests", "replay", "--json"]
            command += ["--data-dir", str(tmp_path / "data")]
            replayed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            assert json.loads(replayed.stdout) == {"replayed": len(letters), "dry_run": False}
        assert replays >= 2
        assert paths_of(one.items()) >= {"", "one", "two"}
        assert one.asked()["flapping-500.tinyweb.test/one"] == 2, "once in vain and once more"
