"""Projects as Scrapy makes them, and spiders that use what it offers, yield the same on the frontier as without it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from crawl_folder import SHORT
from quotes_site import QUOTES, quotes_site
from small_site import Asked, SmallSite

SPIDERS = Path(__file__).parent / "spider_meanings.py"
DELAY_S = 0.06
#: what is filled in, as Scrapy's tutorial tells
FILLED = {
    "quotes": """
        for quote in response.css("div.quote"):
            yield {
                "text": quote.css("span.text::text").get(),
                "author": quote.css("small.author::text").get(),
                "tags": quote.css("a.tag::text").getall(),
            }
        yield from response.follow_all(css="li.next a", callback=self.parse)
""",
    "authors": """
        yield from response.follow_all(css="a.about", callback=self.parse_author)
        yield from response.follow_all(css="li.next a", callback=self.parse)

    def parse_author(self, response):
        yield {"name": response.css(".name::text").get(), "born": response.css(".born::text").get()}
""",
}
#: runs all spiders of the project at once, as Scrapy's documentation tells
ALL = """
import json, sys
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.project import get_project_settings

settings = get_project_settings()
settings.setdict(json.loads(sys.argv[1]), "cmdline")
process = AsyncCrawlerProcess(settings)
for name in sorted(set(process.spider_loader.list()) - {"membership"}):
    process.crawl(name)
process.start()
"""
#: generates spiders, one after the other
GENERATE = """
import json, sys
from scrapy.cmdline import execute

for words in json.loads(sys.argv[1]):
    try:
        execute(["scrapy", "genspider", *words])
    except SystemExit as ended:
        assert not ended.code, words
"""


class Project:
    """A folder that `scrapy startproject` made."""

    def __init__(self, path: Path, site: SmallSite) -> None:
        self.path, self.site = path / "tutorial", site
        self.url = f"http://127.0.0.1:{site.port}"
        self._do([sys.executable, "-m", "scrapy", "startproject", "tutorial"], path)
        self._generate()
        shutil.copy(SPIDERS, self._spiders / "meanings.py")
        self._switch_on()

    @property
    def _spiders(self) -> Path:
        return self.path / "tutorial" / "spiders"

    def _generate(self) -> None:
        made = [
            ["-t", "basic", "bare", f"{self.url}/page/1"],
            ["-t", "basic", "quotes", f"{self.url}/page/1"],
            ["-t", "basic", "authors", f"{self.url}/page/1"],
            ["-t", "crawl", "shop", f"{self.url}/"],
            ["-t", "crawl", "empty_shop", f"{self.url}/"],
            ["-t", "xmlfeed", "feed", f"{self.url}/feed.xml"],
            ["-t", "csvfeed", "things", f"{self.url}/things.csv"],
        ]
        self._do([sys.executable, "-c", GENERATE, json.dumps(made)], self.path)
        for *_, name, _ in made:  # a domain has no port
            self._change(self._spiders / f"{name}.py", r'(allowed_domains = \["127.0.0.1):\d+', r"\1")
        for name, body in FILLED.items():
            self._change(self._spiders / f"{name}.py", r"\n        pass\n", body)
        # What the templates suggest in comments; of the feed, in today's words.
        for name in ("shop", "things"):
            self._change(self._spiders / f"{name}.py", r"#(item|i)\[", r"\1[")
        self._change(self._spiders / "feed.py", r'#item(\["(?:url|name)"\]) = selector.select\("(\w+)"\)',
                     r'item\1 = selector.xpath("\2/text()")')  # fmt: skip

    def _switch_on(self) -> None:
        """What the generated settings have in comments: the project's own middleware, its pipeline, AutoThrottle."""
        settings = self.path / "tutorial" / "settings.py"
        for name in ("DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES"):
            self._change(settings, rf"#({name} = {{\n)#(.*\n)#(}}\n)", r"\1\2\3")
        self._change(settings, "#AUTOTHROTTLE_ENABLED", "AUTOTHROTTLE_ENABLED")
        self._change(settings, "DOWNLOAD_DELAY = 1", f"DOWNLOAD_DELAY = {DELAY_S}")

    @staticmethod
    def _change(path: Path, pattern: str, into: str) -> None:
        text, many = re.subn(pattern, into, path.read_text())
        assert many, (path.name, pattern)
        path.write_text(text)

    def add_the_settings(self) -> None:
        """Those of docs/how-to/scrapy.md; for the tests, everything short."""
        given = {"DATA_DIR": str(self.path / "data"), **{name.upper(): value for name, value in SHORT.items()}}
        with (self.path / "tutorial" / "settings.py").open("a") as settings:
            settings.write('\nADDONS = {"curtsy.scrapy.Addon": 100}\n')
            settings.writelines(f"CURTSY_{name} = {value!r}\n" for name, value in given.items())

    def run_all(self, name: str, **settings: Any) -> dict[str, list[str]]:
        """The items of each spider, as a sorted list of JSON texts."""
        feeds = {f"{name}/%(name)s.jsonl": {"format": "jsonlines"}}
        given = {"FEEDS": feeds, "TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "INFO", **settings}
        self.said = self._do([sys.executable, "-c", ALL, json.dumps(given)], self.path)
        (self.path / f"{name}.log").write_text(self.said)
        found = (self.path / name).glob("*.jsonl")
        return {path.stem: sorted(path.read_text().splitlines()) for path in found if path.stat().st_size}

    def crawl(self, *words: str) -> list[dict[str, Any]]:
        """By the command of Scrapy, in the project's folder."""
        out = self.path / "out.jsonl"
        self.said = self._do([sys.executable, "-m", "scrapy", "crawl", *words, "-O", str(out)], self.path)
        return [json.loads(line) for line in out.read_text().splitlines()]

    def refused(self, *words: str) -> str:
        """What a spider says that does not begin."""
        return self._do([sys.executable, "-m", "scrapy", "crawl", *words], self.path, code=1)

    def _do(self, command: list[str], where: Path, code: int = 0) -> str:
        done = subprocess.run(
            command, cwd=where, env=os.environ | {"QUOTES_SITE": self.url}, capture_output=True, text=True,
            timeout=150, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout[-3000:] + done.stderr[-6000:]
        return done.stderr


@pytest.fixture(scope="module")
def site() -> Iterator[SmallSite]:
    with quotes_site() as started:
        yield started


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Project:
    return Project(tmp_path_factory.mktemp("scrapy"), site)


@pytest.fixture(scope="module")
def usual(project: Project) -> dict[str, list[str]]:
    """What they yield in peace, by Scrapy alone."""
    found = project.run_all("usual", AUTOTHROTTLE_ENABLED=False, DOWNLOAD_DELAY=0)
    assert "Spider error processing" not in project.said, project.said[-6000:]
    return found


@pytest.fixture(scope="module")
def ours(project: Project, usual: dict[str, list[str]]) -> tuple[dict[str, list[str]], list[Asked]]:
    """The same with three settings more; and what the site saw then."""
    project.add_the_settings()
    before = len(project.site.asked)
    found = project.run_all("ours")
    assert "Spider error processing" not in project.said, project.said[-6000:]
    return found, project.site.asked[before:]


def test_every_spider_yields_the_same_items(
    usual: dict[str, list[str]], ours: tuple[dict[str, list[str]], list[Asked]]
) -> None:
    found, _ = ours
    assert found == usual
    assert [json.loads(line)["text"] for line in usual["quotes"]] == sorted(text for text, _, _ in QUOTES)
    assert len(usual["authors"]) == 3
    assert {json.loads(line).get("domain_id") for line in usual["shop"]} == {"1", "2", "3", "4"}
    assert json.loads(usual["feed"][0]) == {"url": "/page/1", "name": "Page 1"}
    assert [json.loads(line)["name"] for line in usual["things"]] == ["Bell", "Gate", "Map"]
    assert len(found) == 14, "all but those that were left as bare as they were made"


def test_the_meanings_are_there_to_be_kept(usual: dict[str, list[str]]) -> None:
    """Without it, two equal nothings would do."""

    def of(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in usual[name]]

    assert {item["depth"] for item in of("following") if "depth" in item} == {0, 1, 2, 3}
    (referrer,) = (item["referer"] for item in of("following") if "referer" in item)
    assert referrer.endswith("/deep/1")
    assert not any("elsewhere" in line or "forbidden" in line for line in usual["following"])
    assert Counter(item.get("kind") for item in of("failing"))["HttpError"] == 1
    assert any("nobody is there" in line and "failed" in line for line in usual["failing"])
    assert {item["body"] for item in of("telling") if "body" in item} == {"a=1&b=zwei", '{"c": [1, 2]}', "plain", ""}
    assert sum("Member" in line for line in usual["telling"]) == 6
    assert {(item["jar"], item["cookie"]) for item in of("sessions")} == {(who, f"who={who}") for who in "abc"}
    assert len(usual["again"]) == 1 + 3 + 2 + 1
    assert {item["start"] for item in of("old_and_new")} == {True}
    assert sum("Cy Marsh" in line for line in usual["waiting"]) == 2
    assert len(usual["ordered"]) == 9
    assert usual["mapped"] == ['{"author": "Bo Finch"}', json.dumps({"page": of("mapped")[1]["page"]})]


def test_the_frontier_keeps_the_pauses_of_all_of_them(ours: tuple[dict[str, list[str]], list[Asked]]) -> None:
    """Sixteen spiders at once, in a project that switched on AutoThrottle and middlewares of its own."""
    _, asked = ours
    assert len(asked) > 80
    assert {one.host for one in asked} == {asked[0].host}
    gaps = [later.at - sooner.at for sooner, later in pairwise(asked)]
    assert min(gaps) >= DELAY_S


def test_priorities_hold_and_of_equal_ones_the_older_goes_first(
    ours: tuple[dict[str, list[str]], list[Asked]],
) -> None:
    first, *paths = (one.path for one in ours[1] if one.path.startswith("/order/"))
    # The first one may have gone before its callback had named the others.
    expected = [f"/order/{number}" for number in (5, 1, 4, 8, 0, 3, 7, 2, 6)]
    assert paths == [path for path in expected if path != first]


def test_a_session_continues_where_another_process_takes_it_up(
    project: Project, ours: tuple[dict[str, list[str]], list[Asked]]
) -> None:
    """A spider is stopped in the middle and started again: logged in as before, with the state of its job."""
    job = ("-s", f"JOBDIR={project.path / 'job'}")
    first = project.crawl("membership", "-s", "CLOSESPIDER_ITEMCOUNT=2", *job)
    second = project.crawl("membership", *job)
    titles = [item["title"] for item in first + second]
    assert sorted(set(titles)) == [f"Member {number}" for number in range(1, 7)], titles
    assert second[0]["pages"] > first[-1]["pages"], "the state of the job is kept where JOBDIR says"
    assert not (project.path / "job" / "requests.queue").exists(), "the requests are in the store"
    logins = [one for one in project.site.asked if one.path == "/login" and one.method == "POST"]
    assert len(logins) == 3, "two of `telling`, one of `membership`"


def test_half_of_the_parts_are_refused(project: Project, ours: tuple[dict[str, list[str]], list[Asked]]) -> None:
    alone = ["-s", "ADDONS={}", "-s", "SCHEDULER=curtsy.scrapy.Scheduler", "-s", "AUTOTHROTTLE_ENABLED=0"]
    before = len(project.site.asked)
    assert "Add curtsy.scrapy.SlotMiddleware to DOWNLOADER_MIDDLEWARES" in project.refused("quotes", *alone)
    turns = ["-s", 'DOWNLOADER_MIDDLEWARES={"curtsy.scrapy.SlotMiddleware": 990}']
    assert "set CURTSY_DELAY_S instead of DOWNLOAD_DELAY" in project.refused("quotes", *alone, *turns)
    assert len(project.site.asked) == before, "nobody was asked"
