"""Runs of a spider: identified by its name and arguments, shown, and discarded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from small_site import SmallSite, linking

from curtsy.scrapy.run_name import name_of
from curtsy.store import external_requests
from curtsy.store.engine import Store
from curtsy.store.external_requests import NewRequest

SPIDER = """
import scrapy

class Quotes(scrapy.Spider):
    name = "quotes"

    def __init__(self, kind, **kwargs):  # it keeps its argument under another name
        super().__init__(**kwargs)
        self.start_urls = [f"http://127.0.0.1:{kwargs['port']}/{kind}"]
        self._wanted = kind

    def parse(self, response):
        yield {"kind": self._wanted, "url": response.url}
        yield from response.follow_all(css="a")
"""


@pytest.fixture
def site() -> Iterator[SmallSite]:
    pages = {f"/{kind}": linking(*(f"/{kind}/{n}" for n in range(4))) for kind in ("a", "b")}
    with SmallSite(pages | {f"/{kind}/{n}": linking() for kind in ("a", "b") for n in range(4)}) as running:
        yield running


def scrapy(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    settings = {"CURTSY_DATA_DIR": "data", "CURTSY_ALLOW_PRIVATE": "127.0.0.0/8", "CURTSY_DELAY_S": "0.05",
                "TELNETCONSOLE_ENABLED": "0", "ADDONS": '{"curtsy.scrapy.Addon": 100}'}  # fmt: skip
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    return subprocess.Popen(
        [sys.executable, "-m", "scrapy", words[0], *given, *words[1:]], cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.timeout(180)
def test_runs_with_other_arguments_do_not_mix(tmp_path: Path, site: SmallSite) -> None:
    (tmp_path / "spider.py").write_text(SPIDER)
    arguments = {kind: ("-a", f"kind={kind}", "-a", f"port={site.port}") for kind in ("a", "b")}
    started = {kind: scrapy(tmp_path, "runspider", "spider.py", "-o", f"{kind}.jsonl", *arguments[kind])
               for kind in arguments}  # fmt: skip
    for kind, process in started.items():
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
        items = [json.loads(line) for line in (tmp_path / f"{kind}.jsonl").read_text().splitlines()]
        assert {item["kind"] for item in items} == {kind}
        assert len(items) == 5
        assert all(f"/{kind}" in item["url"] for item in items)
    with Store.open(f"sqlite:///{tmp_path}/data/curtsy.sqlite") as store, store.read() as tx:
        names = {run.name for run in external_requests.runs(tx)}
    assert names == {f"quotes kind={kind},port={site.port}" for kind in ("a", "b")}


@pytest.mark.timeout(120)
def test_the_shell_and_fetch_work_with_the_add_on(tmp_path: Path, site: SmallSite) -> None:
    url = f"http://127.0.0.1:{site.port}/a"
    for words, expected in ((("shell", url, "-c", "response.status"), b"200"), (("fetch", url), b"<title>")):
        process = scrapy(tmp_path, *words)
        try:
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 0, said.decode()
        assert expected in said


def test_the_guide_begins_with_what_a_killed_process_loses() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "scrapy.md").read_text("utf-8")
    first = " ".join(guide.split("\n\n")[1].split())
    assert "a killed process loses the feed lines that it has not flushed" in first


def test_the_name_of_a_run() -> None:
    spider = Spider(name="one")
    assert name_of(spider, ["scrapy", "crawl", "one"]) == "one"
    assert name_of(spider, ["scrapy", "crawl", "one", "-a", "b=2", "-aa=1"]) == "one a=1,b=2"
    long = name_of(spider, ["scrapy", "-a", f"x={'y' * 500}"])
    other = name_of(spider, ["scrapy", "-a", f"x={'y' * 501}"])
    assert len(long) < 140
    assert long != other


def test_an_unfinished_run_can_be_discarded(tmp_path: Path) -> None:
    database = tmp_path / "data" / "curtsy.sqlite"
    with Store.open(f"sqlite:///{database}") as store:
        run = store.run(external_requests.begin, "quotes kind=a", 1)
        rows = [
            NewRequest(key=bytes([n]), host="a.test", url=f"http://a.test/{n}", rank=0, payload="") for n in range(3)
        ]
        store.run(external_requests.add, run, rows, 1)
    said: Any = curtsy(tmp_path, "external", "discard", "quotes kind=a", "--json")
    assert json.loads(said.stdout) == {"name": "quotes kind=a", "discarded": 3}
    again = curtsy(tmp_path, "external", "discard", "quotes kind=a")
    assert (again.returncode, "There is no unfinished run" in again.stderr) == (2, True)
    with Store.open(f"sqlite:///{database}") as store:
        assert store.run(external_requests.begin, "quotes kind=a", 2) != run


def curtsy(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "curtsy", *words, "--data-dir", str(folder / "data")]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
