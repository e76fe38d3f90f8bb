"""Extraction over labelled pages with decoys: floors that only rise, and a judge that notices what is wrong."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from curtsy.cli.app import app
from curtsy.core.errors import UsageError
from curtsy.records import truth

FOLDER = Path(__file__).parent / "judge"
FLOORS = tomllib.loads((FOLDER / "floors.toml").read_text("utf-8"))
SETS = sorted(path for path in FOLDER.glob("*.toml") if path.stem != "floors")
#: so much better than its floor, and the floor is to be raised
_SLACK = 0.01


def test_every_set_has_floors() -> None:
    assert {path.stem for path in SETS} == set(FLOORS)


@pytest.mark.parametrize("path", SETS, ids=[path.stem for path in SETS])
def test_no_set_falls_below_its_floors(path: Path) -> None:
    report = truth.judge(truth.load(path))
    floors = FLOORS[path.stem]
    assert truth.below(report, floors) == [], [one.case for one in report.wrong]
    assert report.total.recall is not None
    assert report.total.recall - floors["recall"] <= _SLACK, f"raise the floor: {report.total.recall:.3f}"
    assert len(report.wrong) >= floors["wrong"], f"lower `wrong` to {len(report.wrong)}"


CASE = {
    "schema": {
        "title": "Shop",
        "type": "object",
        "properties": {"name": {"type": "string"}, "town": {"type": "string"}},
    },
    "url": "https://a.test/",
    "html": '<script type="application/ld+json">{"@type":"Store","name":"Mend It","town":"Ghent"}</script>',
}


def _file(folder: Path, *cases: dict[str, object]) -> Path:
    path = folder / "truth.jsonl"
    path.write_text("\n".join(json.dumps({**CASE, **case}) for case in cases))
    return path


def test_wrong_missed_and_misattributed_values_are_counted(tmp_path: Path) -> None:
    right = {"truth": {"name": "mend it", "town": "Ghent"}}
    wrong = {"truth": {"name": "Sew It"}, "decoys": {"name": ["Mend It"]}, "fields": ["town"]}
    report = truth.judge(truth.load(_file(tmp_path, right, wrong)))
    assert (report.total.right, report.total.wrong, report.total.missed) == (2, 2, 1)
    assert report.misattributed == 1
    assert {(one.path, one.quote) for one in report.wrong} == {("/name", "Mend It"), ("/town", "Ghent")}
    assert report.missed == [("2", "/name", "Sew It")]
    assert report.unsupported == []


def test_the_command_fails_below_a_floor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path, {"truth": {"name": "Sew It"}})
    floors = tmp_path / "floors.toml"
    floors.write_text("[truth]\nprecision = 1.0\n")
    assert app.main(["judge", str(path), "--floors", str(floors), "--missed"], standalone_mode=False) == 1
    said = capsys.readouterr().out
    assert "precision of total is 0.000" in said
    assert "'Mend It'" in said
    assert "missed" in said
    app.main(["judge", str(path), "--json"], standalone_mode=False)
    told = json.loads(capsys.readouterr().out)
    assert told["truth"]["wrong"][0]["quote"] == "Mend It"


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"truth": {"color": "red"}}, "has no value color"),
        ({"schema": "nothing"}, "unknown schema"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"pages": [{"url": "x"}]}, "needs `url` and `html`"),
    ],
)
def test_a_truth_file_that_cannot_be_read_says_why(tmp_path: Path, case: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        truth.load(_file(tmp_path, case))


@pytest.mark.parametrize(("name", "content"), [("t.jsonl", ""), ("t.jsonl", "\n\n"), ("t.toml", 'schema = "page"\n')])
def test_a_truth_file_without_cases_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match="has no cases: it needs a "):
        app.main(["judge", str(tmp_path / name)], standalone_mode=False)
