"""Decisions about many held records: filters, a preview, and one question."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import contradicting
import orgs
import pytest
import stored

from curtsy.cli import main
from curtsy.core.record import Record
from curtsy.core.settings_loading import load
from curtsy.records.extraction import Parts
from curtsy.store import records
from curtsy.store.engine import Store

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    settings = load(data_dir=tmp_path / ".curtsy")
    with Store.open(settings.effective_store_url) as store:
        crawl = stored.crawl(store, schema="shop", schema_hash="0")
        for number, (host, reason, share) in enumerate(
            [("a.test", "thin", 1.0), ("a.test", "unsupported", 0.4), ("b.test", "thin", 0.9)]
        ):
            path = "/contact/email" if number == 2 else "/name"
            field = {"path": path, "value": "x", "rung": "selector", "verdict": "supported", "evidence": []}
            record = Record(
                crawl=crawl.n, subject=f"{number:032x}", schema="shop", schema_hash="0", url=f"https://{host}/{number}",
                data={"name": "x"}, status="held", fields=(field,),
                confidence={"share": share, "reasons": [reason]},
            )  # fmt: skip
            store.run(records.add, record)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["curtsy", "review", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out, said.err

    return call


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        ((), [1, 2, 3]), (("--reason", "thin"), [1, 3]), (("--host", "A.test"), [1, 2]), (("--field", "/contact"), [3]),
        (("--min-confidence", "0.5"), [1, 3]), (("--reason", "thin", "--host", "b.test"), [3]),
        (("--limit", "2"), [1, 2]),
        (("--reason", "thin", "--limit", "1"), [1]), (("--field", "/con"), []),
    ],
)  # fmt: skip
def test_records_are_selected(run: Run, words: tuple[str, ...], numbers: list[int]) -> None:
    found = json.loads(run("list", *words, "--json")[1])["records"]
    assert [int(one["id"]) for one in found] == numbers


def test_many_are_decided_after_a_preview(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run("many", "approve", "--reason", "thin", "--dry-run")
    assert (code, "https://a.test/0" in out, "https://b.test/2" in out) == (0, True, True)
    assert "0 records decided; 2 records matched." in err
    monkeypatch.setattr("typer.confirm", lambda _: False)
    assert run("many", "approve", "--reason", "thin")[0] == 2, "the answer was no"
    assert len(json.loads(run("list", "--json")[1])["records"]) == 3
    done = json.loads(run("many", "reject", "--reason", "thin", "--yes", "--note", "too little", "--json")[1])
    assert (done["records"], done["matching"]) == ([1, 3], 2)
    assert [int(one["id"]) for one in json.loads(run("list", "--json")[1])["records"]] == [2]
    undone = json.loads(run("undo", "--batch", done["batch"], "--json")[1])
    assert undone["records"] == [1, 3]
    assert len(json.loads(run("list", "--json")[1])["records"]) == 3
    assert run("undo", "--batch", "x")[0] == run("undo")[0] == run("undo", "1", "--batch", "x")[0] == 2
    assert run("reject", "2")[0] == 0
    assert "Record 2 is held" in run("undo", "2")[1]
    assert run("undo", "2")[0] == 2, "nothing is left to undo"
    assert "curtsy review undo --batch" in run("many", "reject", "--reason", "thin", "--yes")[2]
    assert run("many", "approve", "--yes")[0] == 0
    assert json.loads(run("list", "--json")[1])["records"] == []
    assert run("many", "correct")[0] == 2


@pytest.fixture
def contradicted(run: Run, tmp_path: Path) -> int:
    """A published record whose pages state two phone numbers."""
    settings = load(data_dir=tmp_path / ".curtsy")
    segments = stored.folder_of(settings)
    with Store.open(settings.effective_store_url) as store:
        crawl = orgs.make(store, segments, contradicting.pages())
        orgs.run_all(Parts(settings, store, segments), crawl)
        (record,) = orgs.all_records(store, crawl)
    segments.close()
    return int(record.n)


def test_contradicted_fields_are_listed_shown_and_chosen(run: Run, contradicted: int) -> None:
    assert len(json.loads(run("list", "--json")[1])["records"]) == 4
    (listed,) = json.loads(run("list", "--needs", "field", "--json")[1])["records"]
    assert (int(listed["id"]), listed["contradicted"]) == (contradicted, ["/contact/phone"])
    assert "contradicted: /contact/phone" in run("list", "--needs", "field", "--wide")[1]
    assert run("list", "--needs", "phone")[0] == 2
    text = run("show", str(contradicted))[1]
    phones = (contradicting.HOME_PHONE, contradicting.ABOUT_PHONE)
    for phone, (url, _) in zip(phones, contradicting.pages(), strict=True):
        assert f"»{phone}«  ({url}, " in text
    (example,) = [line for line in text.splitlines() if "Choose one: " in line]
    words = shlex.split(example.partition("Choose one: ")[2])
    assert words[words.index("review") :] == [
        "review", "choose", str(contradicted), "--set", f'/contact/phone="{contradicting.HOME_PHONE}"',
    ]  # fmt: skip

    assert run("choose", str(contradicted), "--set", "/contact/phone=112")[0] == 2
    done = json.loads(run("choose", str(contradicted), "--set", f"/contact/phone={phones[0]}", "--json")[1])
    assert (done["status"], done["data"]["contact"]["phone"]) == ("published", phones[0])
    assert json.loads(run("list", "--needs", "field", "--json")[1])["records"] == []
    assert "is published" in run("undo", str(contradicted))[1]
    assert "is published" in run("choose", str(contradicted), "--set", "/contact/phone=null")[1]


def test_many_leaves_published_records_alone(run: Run, contradicted: int) -> None:
    done = json.loads(run("many", "reject", "--yes", "--json")[1])
    assert done["records"] == [1, 2, 3]
    assert json.loads(run("many", "reject", "--needs", "field", "--yes", "--json")[1])["records"] == [contradicted]
