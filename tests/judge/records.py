"""The part `records` of the judge: values of labeled pages with decoys, without a model."""

from __future__ import annotations

import tomllib
from pathlib import Path

from curtsy.records import truth

FOLDER = Path(__file__).parent.parent / "golden" / "judge"


def judge(_peers: Path | None, worst: int, _raise_floors: bool) -> list[str]:
    """Return a table by set, the first wrong values, and what fell below a floor."""
    floors = tomllib.loads((FOLDER / "floors.toml").read_text("utf-8"))
    lines = ["## Records", "", "| set | cases | right | wrong | missed |", "| --- | --- | --- | --- | --- |"]
    notes: list[str] = []
    for name in sorted(floors):
        report = truth.judge(truth.load(FOLDER / f"{name}.toml"))
        total = report.total
        lines.append(f"| {name} | {report.cases} | {total.right} | {total.wrong} | {total.missed} |")
        notes += [f"- wrong: {name}, {one.case}: {one.path} {one.value!r}" for one in report.wrong[:worst]]
        notes += [f"- FELL: {name}: {problem}" for problem in truth.below(report, floors[name])]
    return [*lines, "", *notes]
