"""Crawls from Python, in this process: their pages as they come, and what leaving them early leaves."""

from __future__ import annotations

import asyncio
import functools
import io
import json
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_folder import SHORT
from postgres_server import start_postgres
from small_site import Say, SmallSite, linking

import curtsy.api as curtsy
from curtsy.api.progress import Display, shown_line
from curtsy.control import replay
from curtsy.control.stored_audit import judged
from curtsy.core.model import Counts
from curtsy.grounding import page_schema
from curtsy.services.valkey import EmbeddedValkey
from curtsy.store.engine import Store

START = "http://a.small.test/"


@pytest.fixture
def site() -> Iterator[SmallSite]:
    """Twelve pages that link to each other."""
    paths = [f"/p{i}" for i in range(11)]
    pages = {path: linking(*paths, title=f"Title of {path}") for path in paths}
    with SmallSite({"/": linking(*paths, title="Home"), **pages}) as found:
        yield found


@pytest.fixture
def given(site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """How the crawls of these tests reach the site."""
    monkeypatch.chdir(tmp_path)
    return {**SHORT, "data_dir": tmp_path / "data", "resolve": (site.resolve_rule,)}


def test_pages_come_once_with_their_content(site: SmallSite, given: dict[str, Any]) -> None:
    async def read() -> list[curtsy.Page]:
        return [page async for page in curtsy.crawl(START, delay_s=0.01, **given)]

    found = asyncio.run(read())
    assert sorted(page.url for page in found) == sorted({START, *(f"{START}p{i}" for i in range(11))})
    home = next(page for page in found if page.url == START)
    assert (home.title, home.status, home.depth, home.is_html) == ("Home", 200, 0, True)
    assert home.content is not None
    assert home.content.startswith(b"<!doctype html>")
    assert f"{START}p3" in home.links()
    assert "[x](" in home.markdown()
    assert "[x](" in home.markdown(full_page=True)
    assert sorted(page.url for page in curtsy.pages(data_dir=given["data_dir"])) == sorted(page.url for page in found)


def test_a_plain_loop_works_where_a_loop_runs(given: dict[str, Any]) -> None:
    """As in a notebook."""

    async def cell() -> int:
        return sum(1 for _ in curtsy.crawl(START, max_pages=3, delay_s=0.01, **given))

    assert asyncio.run(cell()) == 3


@pytest.mark.parametrize("asynchronous", [True, False])
def test_leaving_early_leaves_a_crawl_that_continues(
    site: SmallSite, given: dict[str, Any], asynchronous: bool
) -> None:
    crawling = curtsy.crawl(START, delay_s=0.3, **given)
    first: list[str] = []

    async def read() -> None:
        async for page in crawling:
            first.append(page.url)
            break

    if asynchronous:
        asyncio.run(read())
        crawling.leave()
    else:
        for page in crawling:
            first.append(page.url)
            break
    assert EmbeddedValkey.running(given["data_dir"]) is None, "the crawl was not left"
    assert crawling.state == "running"
    known = {page.url for page in curtsy.pages(data_dir=given["data_dir"])}
    more = [page.url for page in curtsy.resume(crawling.id, delay_s=0.01, **given)]
    assert first == [START]
    assert not known & set(more)
    assert len(known) + len(more) == 12
    assert len(site.paths()) == 12, "a page was asked for twice"
    assert crawling.id in repr(crawling)


def test_an_error_of_the_reader_comes_through(given: dict[str, Any]) -> None:
    crawling = curtsy.crawl(START, delay_s=0.3, **given)
    with pytest.raises(ZeroDivisionError):
        _ = [1 / page.depth for page in crawling]
    assert crawling.state == "running"
    with pytest.raises(curtsy.UsageError, match=r"was stopped\..* resume\('.* pages\('"):
        next(iter(crawling))


def test_a_crawl_that_has_finished_says_where_its_pages_are(given: dict[str, Any]) -> None:
    crawling = curtsy.crawl(START, max_pages=2, delay_s=0.01, **given)
    assert len(list(crawling)) == 2
    with pytest.raises(curtsy.UsageError, match=rf"is finished .* pages\('{crawling.id}'\)"):
        list(crawling)


def test_counts_are_those_of_now(given: dict[str, Any]) -> None:
    crawling = curtsy.crawl(START, delay_s=0.3, **given)
    assert crawling.counts == Counts()
    for _ in crawling:
        break
    left = crawling.counts
    assert 0 < left.pages < 12
    assert left.pending > 0
    again = curtsy.resume(crawling.id, delay_s=0.01, **given)
    assert (again.state, again.counts) == ("running", left), "before it goes on"
    with again:
        assert again.counts.pages >= left.pages
        assert len(list(again)) == 12 - left.pages
    for one in (crawling, again):
        assert (one.counts.pages, one.counts.pending) == (12, 0)


def test_a_resumed_crawl_gives_all_that_comes_from_then_on(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However late the reader is."""
    crawling = curtsy.crawl(START, delay_s=0.3, **given)
    for _ in crawling:
        break
    known = sum(1 for _ in curtsy.pages(crawling.id, data_dir=given["data_dir"]))
    again = curtsy.resume(crawling.id, delay_s=0.01, **given)
    begun = again._running.begun

    def late() -> Any:
        assert again._running.wait(60)
        return begun()

    monkeypatch.setattr(again._running, "begun", late)
    assert len(list(again)) == 12 - known


def test_a_task_that_is_cancelled_leaves_well(given: dict[str, Any]) -> None:
    crawling = curtsy.crawl(START, delay_s=0.5, **given)

    async def read() -> None:
        began = asyncio.Event()

        async def all_pages() -> None:
            async with crawling:
                async for _ in crawling:
                    began.set()

        task = asyncio.create_task(all_pages())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(read())
    assert crawling.state == "running"
    assert EmbeddedValkey.running(given["data_dir"]) is None


def test_two_crawls_at_once_share_their_host(site: SmallSite, given: dict[str, Any]) -> None:
    first, second = curtsy.crawl(START, delay_s=0.01, **given), curtsy.crawl(START, delay_s=0.01, **given)
    pages = list(zip(first, second, strict=True))
    assert len(pages) == 12
    assert {page.crawl for page, _ in pages} == {first.id}
    assert {page.crawl for _, page in pages} == {second.id}
    with Store.open(f"sqlite:///{given['data_dir']}/curtsy.sqlite") as store:
        verdict = judged(store, "curtsy")
    assert (verdict.overlaps, verdict.early) == (0, 0)


def test_pages_come_once_from_postgresql_too(given: dict[str, Any], tmp_path: Path) -> None:
    with start_postgres(tmp_path / "pg") as server:
        crawling = curtsy.crawl(START, delay_s=0.01, **given, store_url=server.create_database("api"))
        found = [page.url for page in crawling]
        assert crawling.state == "finished"
    assert len(found) == len(set(found)) == 12


def test_pages_wait_in_the_store_for_a_slow_reader(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curtsy.api.crawling._BATCH", 2)
    with curtsy.crawl(START, delay_s=0.01, **given) as crawling:
        pages = iter(crawling)
        first = next(pages)
        assert crawling._running.wait(60), "the crawl waited for its reader"
        assert crawling._after <= 2, "pages were read ahead"
        assert len({first.url, *(page.url for page in pages)}) == 12


def test_a_seed_that_can_never_be_fetched_is_refused_at_once(given: dict[str, Any]) -> None:
    for seed, said in (("http://127.0.0.1:9/", "127.0.0.1 is not a public address"),
                       ("http://[fd00::1]/", "fd00::1 is not a public address")):  # fmt: skip
        with pytest.raises(curtsy.RefusedSeeds, match=said):
            curtsy.crawl(START, seed, **given)


def test_the_counts_tell_what_became_of_all(given: dict[str, Any]) -> None:
    crawling = curtsy.crawl(START, max_pages=4, delay_s=0.01, **given)
    assert crawling.state == "new"
    assert len(list(crawling)) == 4
    assert crawling.counts.pages == 4
    assert crawling.state == "finished"


@pytest.mark.parametrize(
    ("seeds", "options", "said"),
    [
        ((), {}, "at least one URL"),
        (("ftp://x.test/",), {}, "not an http or https URL"),
        ((START,), {"scope": "planet"}, "scope"),
        ((START,), {"max_pages": 0}, "max_pages"),
        ((START,), {"include": ["("]}, "include|pattern"),
        ((START,), {"no_such_setting": 1}, "no_such_setting"),
        ((START,), {"max_page": 5}, r"crawl\(\) has no argument 'max_page'.* Perhaps you mean max_pages\."),
        ((START,), {"schema": "no-such-schema"}, "no-such-schema"),
        (([START],), {}, r"one by one: crawl\(\*urls\)"),
        ((5,), {}, r"a URL as str, not 5 \(int\)"),
        ((b"http://a.test/",), {}, "a URL as str"),
        ((START,), {"include": "/x"}, "`include` must be a list of patterns"),
        ((START,), {"exclude": None}, "`exclude` must be a list of patterns"),
        ((START,), {"schema": 5}, "`schema` must be str or dict, not 5"),
        ((START,), {"schema": "page", "rubric": 5}, "`rubric` must be str, not 5"),
        ((START,), {"extract": 5}, r"`extract\(page\)` must be a function, not 5"),
        ((START,), {"schema": "page", "score": "x"}, r"`score\(.*\)` must be a function, not 'x'"),
        ((START,), {"data_dir": 5}, "`data_dir` must be a path, not 5"),
        ((START,), {"config": 5}, "`config` must be a path, not 5"),
    ],
)
def test_invalid_input_is_reported(
    given: dict[str, Any], seeds: tuple[str, ...], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(curtsy.UsageError, match=said):
        list(curtsy.crawl(*seeds, **{**given, **options}))


def test_a_seed_that_cannot_be_crawled_is_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(curtsy.RefusedSeeds, match="is not an http or https URL") as refused:
        list(curtsy.crawl(START, "ftp://x.test/", **given))
    assert [where for where, _ in refused.value.refused] == ["seed 1"]


@pytest.mark.parametrize("lane", ["high", "batch", "slow"])
def test_a_crawl_may_have_each_lane_that_the_command_has(given: dict[str, Any], lane: str) -> None:
    assert len(list(curtsy.crawl(START, lane=lane, max_pages=1, **given))) == 1


def test_what_names_no_crawl_is_reported(given: dict[str, Any]) -> None:
    list(curtsy.crawl(START, max_pages=1, **given))
    for look in (curtsy.resume, lambda id, **more: list(curtsy.pages(id, **more))):
        with pytest.raises(curtsy.UsageError, match="by its id"):
            look(5, data_dir=given["data_dir"])
    with pytest.raises(curtsy.UsageError, match="by its id"):
        list(curtsy.records(None, data_dir=given["data_dir"]))  # type: ignore[arg-type]
    with pytest.raises(curtsy.UsageError, match="max_pages"):
        curtsy.resume(max_pages="many", **given)  # type: ignore[arg-type]


def test_a_part_that_is_unavailable_is_reported(given: dict[str, Any]) -> None:
    with pytest.raises(curtsy.Unavailable):
        list(curtsy.crawl(START, frontier_url="redis://127.0.0.1:9/0", **given))
    with pytest.raises(curtsy.UsageError, match="no database"):
        list(curtsy.pages(data_dir=given["data_dir"] / "none"))


def test_a_script_that_ends_in_the_middle_leaves_well(site: SmallSite, given: dict[str, Any]) -> None:
    script = f"""
        import curtsy.api as curtsy
        crawling = curtsy.crawl({START!r}, delay_s=0.3, data_dir={str(given["data_dir"])!r},
                                resolve=({site.resolve_rule!r},), **{SHORT!r})
        pages = iter(crawling)
        print(next(pages).url)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"{START}\n"), done.stderr
    assert EmbeddedValkey.running(given["data_dir"]) is None
    assert len(list(curtsy.resume(delay_s=0.01, **given))) >= 1
    assert len(site.paths()) == 12


# Functions of one's own

WORDS = "geese " * 120


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """How to reach a site with two long pages and a short one."""
    monkeypatch.chdir(tmp_path)
    long = {path: Say(f"<title>About {path[1:]}</title><p>{WORDS}</p>".encode()) for path in ("/geese", "/ducks")}
    with SmallSite({"/": linking("/geese", "/ducks", title="Home"), **long}) as site:
        yield {**SHORT, "data_dir": tmp_path / "data", "resolve": (site.resolve_rule,), "delay_s": 0.01}


def bird_page(page: curtsy.Page) -> dict[str, Any] | None:
    return {"title": page.title, "links": len(page.links())} if page.url != START else None


def nothing() -> None: ...


def positional(name: str, values: Any, words: Any) -> float:
    return 1.0


async def later(page: curtsy.Page) -> None: ...


def length(schema: str, data: dict[str, Any], quotes: list[dict[str, Any]]) -> float:
    assert (schema, quotes) == ("bird_page", [])
    return len(data["title"]) * 5


def test_functions_make_and_score_records(birds: dict[str, Any]) -> None:
    crawling = curtsy.crawl(START, extract=bird_page, score=length, **birds)
    assert len(list(crawling)) == 3
    assert crawling.state == "finished"
    found = list(curtsy.records(crawling.id, data_dir=birds["data_dir"]))
    assert {record["url"]: record["data"]["title"] for record in found} == {
        f"{START}geese": "About geese",
        f"{START}ducks": "About ducks",
    }
    assert {record["scores"]["total"] for record in found} == {55.0}
    assert {(record["schema"], record["status"]) for record in found} == {("bird_page", "published")}
    assert {record["data"]["words"] for record in found} == {120}


def test_records_that_are_held_come_only_when_asked_for(birds: dict[str, Any]) -> None:
    def home(page: curtsy.Page) -> list[dict[str, Any]]:
        return [{"n": n} for n in range(2)] if page.url == START else []

    list(curtsy.crawl(START, extract=home, **birds))
    assert list(curtsy.records(data_dir=birds["data_dir"])) == []
    held = list(curtsy.records(status="held", data_dir=birds["data_dir"]))
    assert [(record["data"]["n"], record["ordinal"]) for record in held] == [(0, 0), (1, 1)]


def test_a_function_that_fails_makes_a_dead_letter_and_nothing_else(birds: dict[str, Any]) -> None:
    def broken(page: curtsy.Page) -> Any:
        return {"when": object()} if "geese" in page.url else {"x": 1 / (page.url != START)}

    crawling = curtsy.crawl(START, extract=broken, **birds)
    assert len(list(crawling)) == 3
    assert crawling.state == "finished"
    assert [record["url"] for record in curtsy.records(data_dir=birds["data_dir"])] == [f"{START}ducks"]
    with Store.open(f"sqlite:///{birds['data_dir']}/curtsy.sqlite") as store:
        letters = replay.find(store, replay.Filter(stage="extract"))
    assert {(letter.url, letter.cause) for letter in letters} == {
        (START, "function_failed"),
        (f"{START}geese", "function_failed"),
    }
    assert crawling.counts.failed == {}, "their pages are there"
    assert crawling.counts.failed_stages == {"extract": 2}
    assert repr(crawling).endswith("2 failed>")
    folder = ("--data-dir", str(birds["data_dir"]))
    assert json.loads(command("status", "--json", *folder).stdout)["failed_stages"] == {"extract": 2}
    assert "dead letters  extract 2" in command("status", *folder).stdout


def test_texts_that_no_database_takes_are_failures_of_their_function(birds: dict[str, Any]) -> None:
    def halves(page: curtsy.Page) -> Any:
        if page.url == START:
            raise ValueError("half \udc80 and zero \0")
        if "geese" in page.url:
            sys.exit("half \udc80")
        return {"half": "\udc80", "url": "http://a.test/\udc80"}

    crawling = curtsy.crawl(START, extract=halves, **birds)
    assert len(list(crawling)) == 3
    assert crawling.state == "finished"
    with Store.open(f"sqlite:///{birds['data_dir']}/curtsy.sqlite") as store:
        letters = {letter.url: letter for letter in replay.find(store, replay.Filter(stage="extract"))}
    assert {letter.cause for letter in letters.values()} == {"function_failed"}
    assert letters[START].detail == "halves: ValueError: half \\udc80 and zero \\x00"
    assert letters[f"{START}geese"].detail == "halves: SystemExit: half \\udc80"
    assert "UnicodeEncodeError" in letters[f"{START}ducks"].detail


def test_a_scorer_that_fails_is_reported_at_once(birds: dict[str, Any]) -> None:
    def scorer(schema: str, data: dict[str, Any], quotes: list[Any]) -> float:
        return float("nan") if "geese" in data["title"] else 1 / 0

    crawling = curtsy.crawl(START, extract=bird_page, score=scorer, **birds)
    list(crawling)
    with Store.open(f"sqlite:///{birds['data_dir']}/curtsy.sqlite") as store:
        letters = replay.find(store, replay.Filter(stage="score"))
    assert {(letter.cause, letter.attempts) for letter in letters} == {("function_failed", 1)}
    assert crawling.counts.failed_stages == {"score": 2}


def test_a_resumed_crawl_needs_its_functions_again(birds: dict[str, Any]) -> None:
    crawling = curtsy.crawl(START, extract=bird_page, **{**birds, "delay_s": 0.5})
    for _ in crawling:
        break
    list(curtsy.resume(crawling.id, extract=bird_page, **birds))
    assert len(list(curtsy.records(data_dir=birds["data_dir"]))) == 2


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "curtsy", *words], capture_output=True, text=True, timeout=60, check=False
    )


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in another process: no function is known."""
    monkeypatch.setattr("curtsy.grounding.page_schema.extractors", known := {"page": page_schema.page_facts})
    monkeypatch.setattr("curtsy.records.plan.extractors", known)
    monkeypatch.setattr("curtsy.records.extraction.extractors", known)
    monkeypatch.setattr("curtsy.grounding.rubrics.scorers", {})


def test_without_its_functions_a_crawl_is_refused_and_loses_nothing(
    birds: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fair(schema: str, data: dict[str, Any], quotes: list[Any]) -> float:
        return 50

    crawling = curtsy.crawl(START, extract=bird_page, score=fair, **{**birds, "delay_s": 0.5})
    for _ in crawling:
        break
    done = command("crawl", "--resume", crawling.id, "--data-dir", str(birds["data_dir"]))
    assert done.returncode == 2
    there = f'curtsy.api.resume("{crawling.id}", extract=bird_page, score=fair)'
    assert there in done.stderr
    assert f"Resume with: {there}\n" in command("status", "--data-dir", str(birds["data_dir"])).stdout
    forget(monkeypatch)
    with pytest.raises(curtsy.UsageError, match="made by `bird_page` and `fair` of a Python program"):
        list(curtsy.resume(crawling.id, **birds))
    with pytest.raises(curtsy.UsageError, match="made by `fair` of a Python program"):
        list(curtsy.resume(crawling.id, extract=bird_page, **birds))
    assert crawling.state == "running"
    list(curtsy.resume(crawling.id, extract=bird_page, score=fair, **birds))
    found = list(curtsy.records(data_dir=birds["data_dir"]))
    assert [record["scores"]["total"] for record in found] == [50.0, 50.0]
    done = command("crawl", "--resume", crawling.id, "--data-dir", str(birds["data_dir"]))
    assert done.returncode == 0, "it has finished: nothing is left to make"


def test_a_stage_without_its_function_is_a_dead_letter_that_can_be_replayed(
    birds: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a worker of a fleet on the same store takes it."""
    crawling = curtsy.crawl(START, extract=bird_page, **birds)
    with monkeypatch.context() as patch:
        forget(patch)
        list(crawling)
    assert crawling.counts.failed_stages == {"extract": 3}
    assert list(curtsy.records(data_dir=birds["data_dir"])) == []
    done = command("failures", "replay", "--stage", "extract", "--data-dir", str(birds["data_dir"]))
    assert done.returncode == 0, done.stderr
    assert f'Resume with: curtsy.api.resume("{crawling.id}", extract=bird_page)\n' in done.stdout
    with pytest.raises(curtsy.UsageError, match="Remove delay_s"):
        list(curtsy.resume(crawling.id, extract=bird_page, **birds))
    del birds["delay_s"]
    list(curtsy.resume(crawling.id, extract=bird_page, **birds))
    assert len(list(curtsy.records(data_dir=birds["data_dir"]))) == 2
    assert crawling.counts.failed_stages == {}


def test_a_score_without_its_function_is_a_dead_letter_too(
    birds: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    crawling = curtsy.crawl(START, schema="page", score=length, **birds)
    forget(monkeypatch)
    list(crawling)
    assert crawling.counts.failed_stages == {"score": 3}
    with Store.open(f"sqlite:///{birds['data_dir']}/curtsy.sqlite") as store:
        letters = replay.find(store, replay.Filter(stage="score"))
    assert {(letter.cause, letter.attempts) for letter in letters} == {("no_such_function", 1)}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"extract": lambda page: None}, "`def`"),
        ({"extract": functools.partial(bird_page)}, "`def`"),
        ({"extract": later}, "not `async def`"),
        ({"extract": bird_page, "schema": "page"}, "replaces `schema`"),
        ({"extract": bird_page, "score": length, "rubric": "esg"}, "replaces `rubric`"),
        ({"score": length}, "schema"),
        ({"render": "sometimes"}, "'never', 'auto' or 'always'"),
        ({"lane": "render"}, "'high', 'batch' or 'slow'"),
        ({"extract": nothing}, r"called as `nothing\(page\)`.*too many positional"),
        ({"extract": bird_page, "score": positional}, r"called as `positional\(schema=.*missing a required argument"),
    ],
)
def test_invalid_functions_are_reported(given: dict[str, Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(curtsy.UsageError, match=said):
        curtsy.crawl(START, **{**given, **options})


# What is shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    list(curtsy.crawl(START, max_pages=2, delay_s=0.01, progress=True, **given))
    assert screen.getvalue().rpartition("\r\x1b[K")[2].startswith("2 pages, ")
    assert screen.getvalue().endswith("\n")
    assert screen.getvalue().count("\n") == 1


def test_a_notebook_has_a_table_that_is_redrawn(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython as far as it is asked: it is not installed here."""
    drawn: list[str] = []

    class Handle:
        def update(self, shown: Any) -> None:
            drawn.append(shown._repr_html_())

    def display(shown: Any, display_id: bool) -> Handle:
        assert display_id
        drawn.append(shown._repr_html_())
        return Handle()

    notebook, ipython = types.ModuleType("IPython.display"), types.ModuleType("IPython")
    notebook.display = display  # type: ignore[attr-defined]
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=1)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    list(curtsy.crawl(START, max_pages=2, delay_s=0.01, progress=True, **given))
    assert len(drawn) >= 2
    assert "<td>2</td>" in drawn[-1]
    assert "ended" in drawn[-1]


def test_a_log_has_lines(given: dict[str, Any]) -> None:
    log = io.StringIO()
    shown = Display(curtsy.crawl(START, **given), log)
    shown.update(Counts(pages=1))
    shown.update(Counts(pages=2))  # too soon
    assert log.getvalue() == "1 pages, 0 pending, 0 skipped, 0 failed\n"
    assert shown_line(Counts(skipped={"robots": 1}, waiting="a host")).endswith("1 skipped, 0 failed; a host")


def test_a_document_has_text_markdown_and_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = b"name,site\nplum,http://a.small.test/plum\n"
    with SmallSite({"/l.csv": Say(table, headers=(("Content-Type", "text/csv"),)), "/plum": linking()}) as site:
        given = {**SHORT, "data_dir": tmp_path / "data", "resolve": (site.resolve_rule,)}
        found = {page.url: page for page in curtsy.crawl(f"{START}l.csv", delay_s=0.01, **given)}
    page = found[f"{START}l.csv"]
    assert page.document_facts is not None
    assert page.document_facts.kind == "csv"
    assert (page.is_html, page.text()) == (False, "name\tsite\nplum\thttp://a.small.test/plum")
    assert page.markdown().startswith("| name | site |")
    file = page.file()
    assert file is not None
    assert [label.text for label in file.labels_at(len("name\tsite\nplum\t"), len(file.text))] == ["site", "plum"]
    html = found.get(f"{START}plum")
    assert html is None or html.file() is None
