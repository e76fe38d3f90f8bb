"""`show`: a stored page, over a real store and real segments."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import stored

from curtsy.cli import main
from curtsy.core.model import Page
from curtsy.core.record import Record
from curtsy.core.settings_loading import load
from curtsy.store import records
from curtsy.store.engine import Store

BODY = (
    b'<!doctype html><title>Geese</title><nav><a href="/menu">Menu</a></nav><h1>Geese</h1>'
    b'<p>\x1b[2J\xc2\x9bThey <b>fly</b> <a href="south#x">south</a>.</p>'
)
URL = "https://a.test/geese"
Show = Callable[..., tuple[int, str, str]]


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Show:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["curtsy", "show", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out, said.err

    return call


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """The newer of two versions of a page, with a record of it and one of its site."""
    settings = load(data_dir=tmp_path / ".curtsy")
    with Store.open(settings.effective_store_url) as store:
        segments = stored.folder_of(settings)
        first, second = stored.crawl(store), stored.crawl(store)
        stored.add_pages(store, segments, first, [(URL, BODY.replace(b"south", b"north"))], title="Old")
        (made,) = stored.add_pages(store, segments, second, [(URL, BODY)], title="Geese")
        segments.close()
        given = {"crawl": second.n, "schema": "bird", "schema_hash": "0", "url": URL}
        store.run(records.add, Record(**given, subject=made.fp.hex(), data={"name": "goose"}))
        store.run(records.add, Record(**given, subject="x" * 32, ordinal=1, data={"name": "other"}))
    return made


def test_it_shows_the_facts_of_the_newest_version(show: Show, page: Page) -> None:
    code, out, err = show(URL)
    assert code == 0
    facts = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert (facts["url"], facts["title"], facts["status"]) == (URL, "Geese", "200")
    assert (facts["page"], facts["links"], facts["records"], facts["versions"]) == (page.id, "2", "1", "2")
    assert "--markdown" in err
    assert show("a.test/geese")[1] == out
    assert show(page.id)[1] == out


def test_it_shows_one_part(show: Show, page: Page) -> None:
    assert show(URL, "--body")[1] == BODY.decode()
    assert "They fly south." in show(URL, "--text")[1]
    assert "\x1b" not in show(URL, "--text")[1], "no page clears the terminal of its reader"
    assert "\x9b" not in show(URL, "--text")[1]
    markdown = show(URL, "--markdown")[1]
    assert "They **fly**" in markdown
    assert "Menu" not in markdown
    assert show(URL, "--headers")[1] == f"status: 200\nContent-Type: text/html\nContent-Length: {len(BODY)}\n"
    assert show(URL, "--links")[1].splitlines() == ["https://a.test/menu", "https://a.test/south"]
    assert json.loads(show(URL, "--records")[1])["data"] == {"name": "goose"}
    rows = show(URL, "--history")[1].splitlines()
    assert len(rows) == 3
    assert show(URL, "--text", "--crawl", rows[2].split("\t")[-1])[1].strip().endswith("north.")


def test_json_has_everything_but_the_body(show: Show, page: Page) -> None:
    found = json.loads(show(URL, "--json")[1])
    assert (found["id"], found["url"], found["headers"][0]) == (page.id, URL, ["Content-Type", "text/html"])
    assert [one["title"] for one in found["history"]] == ["Geese", "Old"]
    assert ("They fly" in found["text"], len(found["links"]), len(found["records"])) == (True, 2, 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("https://a.test/none",), "curtsy explain https://a.test/none"),
        (("7-0123456789abcdef0123456789abcdef",), "There is no page"),
        (("9" * 26,), "is not a page id"),
        (("9" * 20 + "-0123456789abcdef0123456789abcdef",), "is not a page id"),
        (("ftp://a.test/",), "is not an http or https URL"),
        ((URL, "--text", "--body"), "Choose one of: --body, --text"),
    ],
)
def test_what_is_not_there_is_a_usage_error(show: Show, page: Page, words: tuple[str, ...], says: str) -> None:
    code, out, err = show(*words)
    assert (code, out, says in err) == (2, "", True), err
