"""`schedules` and `changes` on the local folder, and `failures replay` of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder
from small_site import SmallSite, linking


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path)
    yield made
    made.close()


def test_a_schedule_may_be_the_first_thing_in_a_folder(folder: CrawlFolder) -> None:
    made = folder.run(
        "schedules", "add", "news", "0 6 * * mon-fri", "https://example.com/", "--zone", "Europe/Berlin",
        "--max-depth", "2", "--schema", "page", "--keep", "5",
    )  # fmt: skip
    assert (made["name"], made["enabled"], made["keep"]) == ("news", True, 5)
    assert (made["crawl"]["max_depth"], made["crawl"]["schema"]) == (2, "page")
    assert made["next"][11:] in ("04:00:00Z", "05:00:00Z")
    assert folder.run("schedules", "list") == {"schedules": [made]}
    assert folder.run("schedules", "pause", "news")["next"] is None
    assert folder.run("schedules", "resume", made["id"])["next"] == made["next"]
    assert folder.run("schedules", "runs", "news") == {"runs": []}
    done = folder.run("schedules", "edit", "news", "--cron", "@daily", "--keep", "0", "--max-pages", "9")
    assert (done["cron"], done["keep"], done["crawl"]["max_pages"], done["crawl"]["max_depth"]) == (
        "@daily",
        None,
        9,
        2,
    )
    assert folder.run("schedules", "run", "news")["state"] == "planned"
    assert folder.run("schedules", "show", "news")["runs"][0]["state"] == "planned"
    assert folder.run("schedules", "remove", "news")["id"] == made["id"]
    assert folder.run("schedules", "list") == {"schedules": []}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("news", "now and then", "https://a.test/"), "not a cron expression"),
        (("news", "61 * * * *", "https://a.test/"), "The minute cannot be '61'"),
        (("news", "@daily", "https://a.test/", "--zone", "Mars"), "no time zone 'Mars'"),
        (("news", "@daily"), "at least one URL"),
        (("news", "@daily", "https://a.test/", "--overlap", "both"), "skip or queue"),
        (("news", "@daily", "https://a.test/", "--webhook", "https://hook.test/"), "needs a secret"),
    ],
)
def test_invalid_input_is_reported_in_one_line(folder: CrawlFolder, words: tuple[str, ...], says: str) -> None:
    process = folder.start("schedules", "add", *words)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert says in said
    assert said.count("\n") == 1


def test_two_crawls_are_compared(tmp_path: Path) -> None:
    pages = {"/": linking("/a", "/b"), "/a": linking(title="A"), "/b": linking(title="B")}
    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        try:
            folder.crawl("http://x.small.test/")
            pages["/a"] = linking(title="Another")
            del pages["/b"]
            folder.crawl("http://x.small.test/")
            (first, second) = [id for (id,) in folder.rows("SELECT id FROM crawls ORDER BY n")]
            found = folder.run("changes", second, "--against", first)
            some = folder.run("changes", "--against", first, "--kind", "gone", "--limit", "1")
        finally:
            folder.close()
    assert found["counts"] == {"new": 0, "changed": 1, "unchanged": 1, "gone": 1, "moved": 0, "unread": 0}
    assert {one["url"]: one["kind"] for one in found["items"]} == {
        "http://x.small.test/": "unchanged",
        "http://x.small.test/a": "changed",
        "http://x.small.test/b": "gone",
    }
    assert [(one["url"], one["why"]) for one in some["items"]] == [("http://x.small.test/b", "gone")]
