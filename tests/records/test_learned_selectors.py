"""A site with three templates and an honest model: it is asked for a few pages of each, and again after a redesign."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orgs
import pytest
import web_poet
from crawl_folder import CrawlFolder
from small_site import Say, SmallSite, linking
from templated_site import SCHEMA, TEMPLATES, HonestModel, Made, pages

from curtsy.core.errors import UnknownSelector
from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.export import page_objects
from curtsy.records import learned_selectors, review
from curtsy.records.extraction import Parts
from curtsy.records.review import Decision
from curtsy.store import templates
from curtsy.store.engine import Store
from curtsy.store.segments import Segments

EACH = 25


@pytest.fixture
def model() -> Iterator[HonestModel]:
    with HonestModel() as opened:
        assert isinstance(opened, HonestModel)
        yield opened


@pytest.fixture
def parts(store: Store, tmp_path: Path, model: HonestModel) -> Iterator[Parts]:
    segments = Segments(tmp_path / "segments")
    # One page after the other: how many of them the model reads is then always the same.
    given = {"llm_url": model.url, "llm_model": "honest", "llm_concurrency": 1}
    yield orgs.parts_of(store, segments, data_dir=tmp_path, **given)
    segments.close()


def crawl(parts: Parts, some: list[Made], llm: str = "endpoint") -> tuple[Crawl, dict[str, Record]]:
    made = orgs.make(parts.store, parts.segments, [(one.url, one.body) for one in some], SCHEMA, llm=llm)
    orgs.run_all(parts, made)
    return made, {one.url: one for one in orgs.all_records(parts.store, made, "published", "held")}


def wrong_and_missed(some: list[Made], found: dict[str, Record]) -> tuple[list[Any], int]:
    wrong, missed = [], 0
    for one in some:
        data = found[one.url].data if one.url in found else {}
        for name in SCHEMA["properties"]:
            want, got = one.truth.get(name), data.get(name) or None
            if got is not None and (sorted(got) != sorted(want or ()) if isinstance(got, list) else got != want):
                wrong.append((one.url, name, got, want))
            missed += want is not None and got is None
    return wrong, missed


def test_the_model_reads_a_few_pages_of_each_template_and_again_after_a_redesign(
    parts: Parts, model: HonestModel
) -> None:
    made = list(pages(2 * EACH, EACH))
    old, new = made[: len(made) // 2], made[len(made) // 2 :]
    for some, most in ((old, 9), (new, 9)):
        before = len(model.asked)
        _, found = crawl(parts, some)
        assert wrong_and_missed(some, found) == ([], 0)
        assert len(model.asked) - before <= most * len(TEMPLATES)
    with parts.store.read() as tx:
        rows = templates.listed(tx, 0, 1000)
    assert {row["why"] for row in rows if row["state"] == "retired"} >= {"layout", "missed"}
    assert Counter(row["shape"] for row in rows if row["leaf"] == "/weight") == {f"/{one}/*": 2 for one in TEMPLATES}


def test_workers_that_read_pages_at_once_make_one_template_of_each_kind(parts: Parts, model: HonestModel) -> None:
    many = Parts(parts.settings.model_copy(update={"llm_concurrency": 8}), parts.store, parts.segments)
    made = list(pages(EACH))
    _, found = crawl(many, made)
    assert wrong_and_missed(made, found) == ([], 0)
    assert len(model.asked) < len(made)
    with parts.store.read() as tx:
        rows = templates.listed(tx, 0, 1000)
    assert len({row["template"] for row in rows}) == len(TEMPLATES)
    assert max(Counter((row["template"], row["leaf"]) for row in rows).values()) == 1


def test_a_model_that_overlooks_values_teaches_too(parts: Parts) -> None:
    with HonestModel(careless=0.05) as careless:
        changed = {"llm_url": careless.url}
        overlooking = Parts(parts.settings.model_copy(update=changed), parts.store, parts.segments)
        made = list(pages(60))
        first, later = made[:75], made[75:]
        crawl(overlooking, first)
        before = len(careless.asked)
        _, found = crawl(overlooking, later)
        wrong, missed = wrong_and_missed(later, found)
        assert wrong == []
        assert missed <= 0.02 * len(later) * len(SCHEMA["properties"])
        assert len(careless.asked) - before <= len(later) // 5


def test_learned_values_have_their_exact_span_and_the_selector_in_their_evidence(parts: Parts) -> None:
    _, found = crawl(parts, list(pages(20)))
    rungs = Counter[str]()
    for record in found.values():
        texts = {one.sha256: one.text for one in review.review_case(parts.store, record.n).sources}
        for field in record.fields:
            rungs[field["rung"]] += 1
            for one in field["evidence"]:
                assert texts[one["sha256"]][one["start"] : one["end"]] == one["quote"]
                assert one["locator"].startswith("learned:main > ") is (field["rung"] == "learned")
    assert rungs["learned"] > rungs["llm"]
    with parts.store.read() as tx:
        assert sum(row["pages"] for row in templates.listed(tx, 0, 1000) if row["leaf"] == "/name") == len(found)


def test_nothing_is_learned_when_it_is_turned_off(parts: Parts, model: HonestModel) -> None:
    off = Parts(parts.settings.model_copy(update={"learn_selectors": False}), parts.store, parts.segments)
    _, found = crawl(off, list(pages(5)))
    assert len(model.asked) == len(found) == 15
    assert learned_selectors.find(parts.store, state=None) == []


def test_the_model_checks_every_nth_page(parts: Parts, model: HonestModel) -> None:
    crawl(parts, list(pages(15)))
    often = Parts(parts.settings.model_copy(update={"selector_check_every": 5}), parts.store, parts.segments)
    before = len(model.asked)
    crawl(often, [one for one in pages(35) if int(one.url.rpartition("/")[2].partition("-")[0]) >= 15])
    assert 3 * 3 <= len(model.asked) - before <= 3 * 5


def test_a_model_that_contradicts_a_selector_retires_it(parts: Parts, model: HonestModel) -> None:
    crawl(parts, list(pages(10)))
    often = Parts(parts.settings.model_copy(update={"selector_check_every": 1}), parts.store, parts.segments)
    honest = model.answer

    def otherwise(body: dict[str, Any]) -> Any:
        said = honest(body)
        said["maker"] = {"quote": said["name"]["quote"], "value": said["name"]["value"]}
        return said | {"name": None}

    model.answer = otherwise
    crawl(often, [one for one in pages(12) if "/10-" in one.url])
    why = {one["field"]: one["why"] for one in learned_selectors.find(parts.store, state="retired")}
    assert why.get("/name") == "contradicted"


# Corrections


def test_three_corrections_teach_without_a_model_and_a_fourth_retires(parts: Parts) -> None:
    made = [one for one in pages(8) if one.template == "lamps"]
    # A schema of its own finds the name, so that there is a record to correct.
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "name": {"type": "string", "x-curtsy": {"css": "h1"}}}}

    def again(some: list[Made]) -> dict[str, Record]:
        one = orgs.make(parts.store, parts.segments, [(it.url, it.body) for it in some], schema, llm="none")
        orgs.run_all(parts, one)
        return {it.url: it for it in orgs.all_records(parts.store, one, "published", "held")}

    first = again(made[:3])
    assert all("maker" not in record.data for record in first.values())
    for one in made[:3]:
        correction = {"/maker": one.truth["maker"], "/weight": one.truth["weight"]}
        decision = Decision(decision="correct", who="Ada", correction=correction)
        review.decide(parts.store, first[one.url].n, decision, 5, parts)
    assert {one["field"] for one in learned_selectors.find(parts.store)} == {"/maker", "/weight"}
    later = again(made[3:])
    for one in made[3:]:
        data = later[one.url].data
        assert (data["maker"], data["weight"]) == (one.truth["maker"], one.truth["weight"])
    decision = Decision(decision="correct", who="Ada", correction={"/maker": "Somebody Else"})
    review.decide(parts.store, later[made[3].url].n, decision, 10**13, parts)
    assert [one["field"] for one in learned_selectors.find(parts.store)] == ["/weight"]
    (gone,) = learned_selectors.find(parts.store, state="retired")
    assert (gone["field"], gone["why"]) == ("/maker", "corrected")


# Export


def test_page_objects_find_what_the_selectors_find(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[str] = []
    # The registry of web-poet would request the list of public suffixes.
    monkeypatch.setattr(web_poet, "handle_urls", lambda pattern: handled.append(pattern) or (lambda made: made))
    some = list(pages(25))
    crawl(parts, some)
    text, names = page_objects.module_of(learned_selectors.find(parts.store, 0, 1000))
    assert len(names) == 3
    assert 'handle_urls("goods.test/lamps/")' in text
    module: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec"), module)
    assert sorted(handled) == [f"goods.test/{one}/" for one in sorted(TEMPLATES)]
    for one in some:
        name = next(name for name in names if one.template.capitalize() in name)
        response = web_poet.HttpResponse(url=one.url, body=one.body, encoding="utf-8")
        page = module[name](response=response)
        assert page.name == one.truth["name"]
        assert page.maker == one.truth["maker"]
        assert float(page.weight.removesuffix(" kg")) == one.truth["weight"]
        assert sorted(page.colors) == sorted(one.truth["colors"])
        assert page.discount == (str(one.truth["discount"]) if "discount" in one.truth else None)


# Commands


def test_the_commands_list_show_forget_and_export(tmp_path: Path, model: HonestModel) -> None:
    made = [one for one in pages(8) if one.template == "rugs"]
    paths = {one.url.partition("goods.test")[2]: Say(one.body) for one in made}
    with SmallSite({"/": linking(*paths), **paths}) as site:
        folder = CrawlFolder(
            tmp_path, resolve=[site.resolve_rule], llm_url=model.url, llm_model="honest", llm_concurrency=1
        )
        schema = tmp_path / "thing.json"
        schema.write_text(json.dumps(SCHEMA))
        folder.run("crawl", "http://a.small.test/", "--delay", "0", "--schema", str(schema))
        listed = folder.run("selectors", "list")["selectors"]
        assert {one["field"] for one in listed} >= {"/name", "/maker", "/weight", "/released", "/colors/*"}
        weight = next(one for one in listed if one["field"] == "/weight")
        assert (weight["host"].partition(":")[0], weight["url_shape"], weight["css"]) == (
            "a.small.test", "/rugs/*", "main > p.weight",
        )  # fmt: skip
        shown = folder.run("selectors", "show", weight["id"])
        assert len(shown["taught_by"]) >= 3
        out = tmp_path / "pages.py"
        assert folder.run("selectors", "export", "--out", str(out))["selectors"] == len(listed)
        assert "class ASmallTest" in out.read_text()
        assert folder.run("selectors", "forget", weight["id"])["why"] == "forgotten"
        assert "/weight" not in {one["field"] for one in folder.run("selectors", "list")["selectors"]}
        assert "/weight" in {one["field"] for one in folder.run("selectors", "list", "--all")["selectors"]}
        assert folder.run("selectors", "list", "--host", "other.test")["selectors"] == []
        folder.close()


def test_an_unknown_selector_is_named(store: Store) -> None:
    for step in (lambda: learned_selectors.show(store, 999), lambda: learned_selectors.forget(store, 999, 1)):
        with pytest.raises(UnknownSelector, match="999"):
            step()
