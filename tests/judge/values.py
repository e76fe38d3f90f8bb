"""Values of real pages that packages carry as their test data: dates, authors and recipes.

The truth is that of the packages: the dates that the tests of `htmldate` expect, the bylines that `readability`
expects, both as the tests of `@postlight/parser` expect them, the JSON-LD of recipe pages, and what the tests of
`recipe-scrapers` expect. Recipes and dates are also read without the structured data that state them. Half of the pages
is held back: nobody looks at its failures.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from curtsy.extract import record_claims
from curtsy.grounding import judge as grounding
from curtsy.grounding import schema
from tests.judge import places
from tests.judge.value_sets import Case, cases, plain

_SCRIPT = Path(__file__).parent / "peers_values.py"
_TEXT = {"type": "string"}
_RECIPE = {"name": _TEXT, "author": _TEXT, "ingredients": {"type": "array", "items": _TEXT}}


# Comparing


def _published(case: Case) -> dict[str, list[str]]:
    made = schema.load("article")
    if "recipe" in case.set:
        made = schema.inline({"type": "object", "properties": _RECIPE})
    page = record_claims.sources_of("0", case.url, case.html.encode(), "text/html; charset=utf-8")
    found = grounding.assemble(made, grounding.settle(made, record_claims.extract(made, [page]).claims))
    date = found.get("published")
    return {
        "date": [date] if date else [], "author": found.get("authors", [found["author"]] if "author" in found else []),
        "name": [found["name"]] if "name" in found else [], "ingredients": found.get("ingredients", []),
    }  # fmt: skip


def _is_same(field: str, value: str, true: str) -> bool:
    """A byline has more than the name of its author; a page may show a longer name of its recipe."""
    if field == "date":
        return value in true.split()
    one, other = plain(value), plain(true)
    return one == other or (field == "author" and one in other) or (field == "name" and other in one)


def _count(tally: Counter[str], field: str, found: list[str], truth: list[str]) -> None:
    right = [value for value in found if any(_is_same(field, value, true) for true in truth)]
    missed = [true for true in truth if not any(_is_same(field, value, true) for value in found)]
    tally["right"] += len(right)
    tally["wrong"] += len(found) - len(right) if truth else 0
    tally["missed"] += len(missed)


def judge(python: Path | None, show_worst: int, _raise_floors: bool) -> list[str]:
    every = cases()
    if not every:
        return ["## Values", "", "No package could be downloaded."]
    found = {"Curtsy": {(one.set, one.name): _published(one) for one in every}}
    if python is not None:
        given = json.dumps([[one.set, one.name, one.url, one.html] for one in every if "recipe" not in one.set])
        run = subprocess.run([python, "-P", _SCRIPT], input=given, text=True, stdout=subprocess.PIPE, check=True)
        for reader, rows in json.loads(run.stdout).items():
            found[reader] = {(of, name): values for of, name, values in rows}
    return _report(every, found, show_worst)


def _report(cases: list[Case], found: dict[str, Any], show_worst: int) -> list[str]:
    tallies: dict[tuple[str, ...], Counter[str]] = {}
    failures: list[str] = []
    for one in cases:
        for field, truth in one.truth.items():
            for reader, values in found.items():
                if (one.set, one.name) not in values:
                    continue
                tally = tallies.setdefault((one.set, field, one.half, reader), Counter())
                before = tally["wrong"] + tally["missed"]
                tally["pages"] += 1
                _count(tally, field, values[one.set, one.name].get(field, []), truth)
                if reader == "Curtsy" and one.half == "read" and tally["wrong"] + tally["missed"] > before:
                    failures.append(f"- {one.set}, {one.name}: {field} {values[one.set, one.name][field][:3]}")
    head = "| set | field | half | reader | pages | right | wrong | missed | precision | recall |"
    rows = [_row(key, tally) for key, tally in sorted(tallies.items())]
    return ["## Values", "", head, places.rule(head), *rows, "", *failures[:show_worst]]


def _row(key: tuple[str, ...], tally: Counter[str]) -> str:
    right, wrong, missed = tally["right"], tally["wrong"], tally["missed"]
    shares = [right / max(1, right + wrong), right / max(1, right + missed)]
    cells = [*key, tally["pages"], right, wrong, missed, *(f"{share:.3f}" for share in shares)]
    return f"| {' | '.join(map(str, cells))} |"
