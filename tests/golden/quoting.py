"""Two models over the pages of the judge's sets: one quotes the line that states a value, one quotes any other line.

python tests/golden/quoting.py
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from curtsy.core.claims import Claim, Rung, Source
from curtsy.extract import record_claims
from curtsy.grounding import judge
from curtsy.grounding.dates import dates
from curtsy.grounding.numbers import numbers
from curtsy.grounding.schema import Leaf
from curtsy.records import truth

FOLDER = Path(__file__).parent / "judge"


def shares(name: str) -> tuple[float, float, Counter[str]]:
    """Return the published shares of true quotes and of quotes of other lines, and counts by leaf."""
    told: Counter[str] = Counter()
    for case in truth.load(FOLDER / f"{name}.toml"):
        sources = [
            record_claims.sources_of(str(at), url, html.encode(), "text/html; charset=utf-8").text
            for at, (url, html) in enumerate(case.pages)
        ]
        for path, values in case.truth.items():
            leaf = case.schema.leaf_for(path.replace("*", "0"))
            for source in sources:
                for line in filter(None, source.text.split("\n")):
                    _try(told, leaf, source, line, values)
    right = told["true published"] / max(1, told["true"])
    return right, told["other published"] / max(1, told["other"]), told


def _try(told: Counter[str], leaf: Leaf, source: Source, line: str, values: tuple[Any, ...]) -> None:
    stated = [one for one in values if _states(line, one, leaf)]
    for kind, value in [("true", one) for one in stated] or [("other", one) for one in _values(line, leaf)]:
        claim = Claim(path=leaf.path.replace("*", "0"), value=value, rung=Rung.LLM, source=source, quote=line)
        field = judge.judge(claim, leaf)
        published = judge.is_published(field, leaf)
        told[kind] += 1
        told[f"{kind} published"] += published
        if published is (kind == "other"):
            told[f"{kind} {leaf.path} {value!r} <- {line!r} {field.note}"] += 1


def _states(line: str, value: Any, leaf: Leaf) -> bool:
    if leaf.type == "date":
        return any(day.iso == value for one in dates(line) for day in one.days)
    if isinstance(value, int | float):
        return any(float(reading) == float(value) for number in numbers(line) for reading in number.readings)
    return str(value) in line


def _values(line: str, leaf: Leaf) -> Iterator[Any]:
    """What a model could claim from a line, in the type of the leaf."""
    if leaf.type == "date":
        yield from [one.days[0].iso for one in dates(line) if one.days[0].day][:1]
    elif leaf.type in ("integer", "number"):
        found = next(iter(numbers(line)), None)
        if found is not None:
            value = min(found.readings)
            yield int(value) if value == value.to_integral_value() else float(value)
    elif leaf.path.endswith("email"):
        yield from re.findall(r"[\w.]+@[\w.-]+\w", line)[:1]
    elif leaf.type == "string":
        yield line.rstrip(".")


if __name__ == "__main__":
    for name in ("articles", "events", "jobs", "organizations", "organization_sites", "products"):
        right, other, told = shares(name)
        print(f"{name}: true {right:.3f} of {told['true']}, other {other:.3f} of {told['other']}")
        for key, count in told.items():
            if "<-" in key:
                print(f"   {count} {key}")
