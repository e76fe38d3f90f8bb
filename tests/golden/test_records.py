"""The quality of records over the tiny web's known truth: floors that only rise, nothing exported without evidence."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orgs
import pytest

from curtsy.cli import demo_report
from curtsy.core.model import Crawl
from curtsy.records import evaluation
from curtsy.records.evaluation import Report
from curtsy.store.engine import Store
from curtsy.store.segments import Segments

FLOORS: dict[str, Any] = tomllib.loads((Path(__file__).parent / "floors.toml").read_text("utf-8"))["organization"]
#: twice round all kinds of sites and all names
ORGANISATIONS = range(40)
#: so much better than its floor, and the floor is to be raised
_SLACK = 0.005


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Crawl]]:
    """Every section of every site, extracted without a model; scripts are not run."""
    folder = tmp_path_factory.mktemp("records")
    segments = Segments(folder / "segments")
    with Store.open(f"sqlite:///{folder / 'store.sqlite'}") as store:
        crawl = orgs.make(store, segments, orgs.bodies(ORGANISATIONS), rubric="esg")
        orgs.run_all(orgs.parts_of(store, segments), crawl)
        yield store, crawl
    segments.close()


@pytest.fixture(scope="module")
def report(made: tuple[Store, Crawl]) -> Report:
    return evaluation.evaluate(*made, evaluation.organization_truth, evaluation.organization_kind)


def check(name: str, found: float | None, floor: float) -> None:
    assert found is not None, name
    assert found >= floor, f"{name} fell to {found:.4f}, under its floor of {floor}"
    assert found - floor <= _SLACK, f"{name} rose to {found:.4f}: raise its floor of {floor} in floors.toml"


def test_precision_and_recall_do_not_fall(report: Report) -> None:
    check("precision", report.total.precision, FLOORS["precision"])
    check("recall", report.total.recall, FLOORS["recall"])
    assert {name.replace("/", ".").strip(".*") for name in report.fields} == set(FLOORS["fields"])
    for name, tally in report.fields.items():
        floors = FLOORS["fields"][name.replace("/", ".").strip(".*")]
        check(f"precision of {name}", tally.precision, floors["precision"])
        check(f"recall of {name}", tally.recall, floors["recall"])


def test_every_rung_is_as_precise_as_it_was(report: Report) -> None:
    assert set(report.rungs) == set(FLOORS["rungs"])
    for name, floor in FLOORS["rungs"].items():
        check(f"precision of {name}", report.rungs[name].precision, floor)


def test_sites_that_say_it_in_html_are_read_in_full(report: Report) -> None:
    for name, floor in FLOORS["kinds"].items():
        check(f"recall of {name}", report.kinds[name].recall, floor)


def test_no_unsupported_value_is_exported(report: Report) -> None:
    assert report.exported > 0
    assert report.unsupported <= FLOORS["unsupported"] == 0
    assert report.mistakes == []


def test_what_is_thin_waits_for_a_person(report: Report) -> None:
    assert report.held == sum(orgs.is_thin(number) for number in ORGANISATIONS)
    assert report.exported + report.held == len(ORGANISATIONS)


def test_the_demo_prints_it(made: tuple[Store, Crawl], capsys: pytest.CaptureFixture[str]) -> None:
    assert demo_report.judged(*made)
    said = capsys.readouterr().out
    assert "unsupported values exported: 0" in said
    assert "/sustainability_claims/*" in said
    assert "review queue" in said
    assert re.search(r"/founded_year .* \(\S+\.(pdf|xlsx), (page|sheet) \d\)", said)


def test_the_evaluation_finds_what_is_wrong(made: tuple[Store, Crawl]) -> None:
    """Values that are not true, and spans that do not hold what they quote, are counted as such."""
    store, crawl = made
    with store.begin() as tx:
        before = tx.exec_driver_sql("SELECT n, fields, data FROM records WHERE status = 'published' LIMIT 1").one()
        fields = before.fields.replace('"start": ', '"start": 1').replace('"rung": "selector"', '"rung": "llm"')
        spoilt = fields.replace('"path": "/founded_year", "value": ', '"path": "/founded_year", "value": 1')
        tx.exec_driver_sql("UPDATE records SET fields = ? WHERE n = ?", (spoilt, before.n))
    try:
        found = evaluation.evaluate(store, crawl, evaluation.organization_truth)
        assert found.unsupported >= 5
        assert [path for _, path, _ in found.mistakes] == ["/founded_year"]
        assert found.total.precision is not None
        assert found.total.precision < 1
        assert "llm" in found.rungs
    finally:
        with store.begin() as tx:
            tx.exec_driver_sql("UPDATE records SET fields = ? WHERE n = ?", (before.fields, before.n))
