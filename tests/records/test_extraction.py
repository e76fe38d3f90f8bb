"""Records made anew from stored pages: no site is asked, versions and differences, another schema beside the first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stored
from crawl_folder import CrawlFolder
from small_site import Say, SmallSite, linking

from curtsy.core.errors import UsageError, WrongState
from curtsy.core.model import CrawlState
from curtsy.records import plan as plans
from curtsy.records import reextraction
from curtsy.store import crawls
from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.facts import org_host
from curtsy.tinyweb.pages import OrgSite, Shape

#: with 30 pages each, but for the thin ones
ORGANISATIONS = 37
WORDS = " ".join(f"word{i}" for i in range(120))
NAME = {"type": "string", "x-curtsy": {"css": "h1"}}
YEAR = {"type": ["integer", "null"]}
FOUND = {**YEAR, "x-curtsy": {"pattern": r"was founded in (?P<value>\d{4})"}}


def schema(year: dict[str, Any]) -> dict[str, Any]:
    return {"title": "Shop", "type": "object", "properties": {"name": NAME, "founded_year": year}, "required": ["name"]}


def shop(name: str, year: int) -> Say:
    text = f"<p>{name} was founded in {year} by two sisters who baked bread. {WORDS}"
    return Say(f"<!doctype html><title>{name}</title><h1>{name}</h1>{text}".encode())


@pytest.fixture
def site() -> Iterator[SmallSite]:
    pages = {"/": linking("/goose", "/duck"), "/goose": shop("The Quiet Goose", 1954), "/duck": shop("Loud Duck", 1961)}
    with SmallSite(pages) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, site: SmallSite) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
    yield made
    made.close()


def schema_file(folder: CrawlFolder, name: str, content: dict[str, Any]) -> str:
    path = folder.path / f"{name}.json"
    path.write_text(json.dumps(content))
    return str(path)


def test_another_schema_over_stored_pages_says_what_is_otherwise(folder: CrawlFolder, site: SmallSite) -> None:
    first = schema_file(folder, "shop", schema(YEAR))
    folder.run("crawl", "http://a.small.test/", "--delay", "0", "--schema", first)
    names = sorted(one["data"]["name"] for one in folder.run("records")["records"])
    assert names == ["Loud Duck", "The Quiet Goose"]
    asked = len(site.asked)
    changed = schema_file(folder, "shop", schema(FOUND))
    told = folder.run("extract", "--schema", changed, "--crawl", "last", "--diff")
    assert (told["extracted"], told["records"]) == (3, {"published": 2})
    assert told["diff"]["counts"] == {"changed": 2}
    values = {item["url"][-5:]: item["values"] for item in told["diff"]["items"]}
    assert values["goose"] == {"/founded_year": {"before": None, "after": 1954}}
    found = folder.run("records")["records"]
    assert {one["data"]["founded_year"] for one in found} == {1954, 1961}
    assert {one["version"] for one in found} == {1}, "of another schema"
    assert len(folder.run("records", "--every-schema")["records"]) == 4
    assert len(site.asked) == asked, "no site was asked"
    again = folder.run("extract", "--diff")
    assert (again["extracted"], again["diff"]["items"]) == (3, [])
    site_wide = folder.run("extract", "--schema", "organization", "--diff")
    assert site_wide["extracted"] == 1, "the site"
    assert site_wide["diff"]["counts"]["gone"] == 2, "the pages have no record of their own any more"


def test_what_says_something_else_is_the_next_version_and_reviewed_records_stay(
    folder: CrawlFolder, site: SmallSite
) -> None:
    spec = schema_file(folder, "shop", schema(FOUND))
    folder.run("crawl", "http://a.small.test/", "--delay", "0", "--schema", spec)
    goose, duck = sorted(folder.run("records")["records"], key=lambda one: one["data"]["founded_year"])
    folder.run("review", "correct", goose["id"], "--set", "/founded_year=1955", "--by", "Ada")
    with Store.open(folder.settings().effective_store_url) as store, store.begin() as tx:
        # As if a rule had been worse when they were made.
        tx.exec_driver_sql(f'UPDATE records SET data = \'{{"name": "Duck"}}\' WHERE n = {duck["id"]}')
    told = folder.run("extract", "--diff")
    assert {item["record"] for item in told["diff"]["items"]}.isdisjoint({int(goose["id"]), int(duck["id"])})
    by_version = {(one["data"]["name"], one["version"]): one for one in folder.run("records")["records"]}
    assert set(by_version) == {("The Quiet Goose", 1), ("Loud Duck", 2)}
    assert by_version["The Quiet Goose", 1]["data"]["founded_year"] == 1955, "the reviewed one stays published"
    (beside,) = folder.run("records", "--held")["records"]
    assert (beside["version"], beside["data"]["founded_year"]) == (2, 1954)
    assert beside["confidence"]["reasons"] == ["reviewed_before"]
    assert [one["id"] for one in folder.run("records", "--status", "superseded")["records"]] == [duck["id"]]
    assert folder.run("extract", "--diff")["diff"]["items"] == [], "the same once more changes nothing"


def test_what_is_not_said_stays_as_the_crawl_has_it_and_scores_are_compared(folder: CrawlFolder) -> None:
    spec = schema_file(folder, "shop", schema(YEAR))
    folder.run("crawl", "http://a.small.test/", "--delay", "0", "--schema", spec, "--rubric", "esg", "--llm", "none")
    told = folder.run("extract", "--schema", schema_file(folder, "shop", schema(FOUND)), "--diff")
    assert {tuple(item["scores"]) for item in told["diff"]["items"]} == {()}, "scored by the same rubric"
    assert {one["scores"]["rubric"] for one in folder.run("records")["records"]} == {"esg"}
    (llm,) = {llm for (llm,) in folder.rows("SELECT llm FROM crawls")}
    assert llm == "none"
    told = folder.run("extract", "--rubric", "none", "--diff")
    assert told["diff"]["counts"] == {"changed": 2}
    assert {item["scores"]["/rubric"]["before"] for item in told["diff"]["items"]} == {"esg"}
    assert {tuple(item["values"]) for item in told["diff"]["items"]} == {()}
    assert not any("rubric" in one["scores"] for one in folder.run("records")["records"])
    told = folder.run("extract", "--rubric", "esg", "--diff")
    assert {item["scores"]["/total"]["before"] for item in told["diff"]["items"]} == {None}
    assert {one["version"] for one in folder.run("records")["records"]} == {3}


def test_only_a_finished_crawl_is_extracted_anew(folder: CrawlFolder) -> None:
    folder.crawl("http://a.small.test/")
    plan = plans.crawl_fields("page")
    with Store.open(folder.settings().effective_store_url) as store:
        store.run(crawls.set_state, 1, CrawlState.RUNNING, None, 1)
        with pytest.raises(WrongState, match="is running"):
            reextraction.begin(store, "last", plan, 1)
        store.run(crawls.set_state, 1, CrawlState.FINISHED, None, 1)
        assert reextraction.begin(store, "last", plan, 1).subjects == 3
        with pytest.raises(WrongState, match="is extracting"):
            reextraction.begin(store, "last", plan, 1)
    with pytest.raises(UsageError, match="unknown schema: 'nothing'"):
        plans.crawl_fields("nothing")


def test_a_thousand_stored_pages_are_extracted_anew_without_one_request(tmp_path: Path) -> None:
    with TinyWeb.start(hosts=ORGANISATIONS, faults=False, log=tmp_path / "access.log") as web:
        folder = CrawlFolder(tmp_path, web)
        settings = folder.settings()
        pages = []
        for number in range(ORGANISATIONS):
            org = OrgSite(org_host(number), Shape(), 1)
            answers = [(path, org.answer(path)) for path in org.paths]
            pages += [(f"http://{org.host}{path}", one.wire[len(one.head) :]) for path, one in answers]
        with Store.open(settings.effective_store_url) as store:
            segments = stored.folder_of(settings)
            crawl = stored.crawl(store)
            for start in range(0, len(pages), 200):
                stored.add_pages(store, segments, crawl, pages[start : start + 200])
            segments.close()
        assert len(pages) >= 1000
        told = folder.run("extract", "--schema", "organization", "--crawl", crawl.id, "--diff")
        assert told["extracted"] == ORGANISATIONS
        assert told["dead_letters"] == {}
        assert sum(told["records"].values()) == ORGANISATIONS
        told = folder.run("extract", "--schema", "page", "--crawl", crawl.id)
        assert told["extracted"] == sum(told["records"].values()) == len(pages)
        assert web.requests() == [], "the sites' own log"
        folder.close()
