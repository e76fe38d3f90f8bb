"""The labelled cases of grounding: `grounding/*.json`, each a list of

name, source (its text), leaf, value, quote    the claim; `kind`, `locator`, `rung`, `path`, `prompts` where they matter
verdict, note                                  what grounding must say
quoted, at, becomes                            the words of the evidence, where they begin, the value as it is published
same                                           (long texts) whether a reader finds the value stated in the source
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.grounding.schema import Leaf

FOLDER = Path(__file__).parent / "grounding"


@dataclass(frozen=True)
class Case:
    id: str
    claim: Claim
    leaf: Leaf
    prompts: tuple[str, ...]
    expected: dict[str, Any]


def cases(*names: str) -> list[Case]:
    """Of the files of these names, or of all."""
    files = sorted(FOLDER.glob("*.json")) if not names else [FOLDER / f"{name}.json" for name in names]
    return [_case(file.stem, one) for file in files for one in json.loads(file.read_text())]


def _case(file: str, one: dict[str, Any]) -> Case:
    leaf = one["leaf"]
    kind = SourceKind(one.get("kind", "text"))
    source = Source(kind, page="page", url="http://alder.test/", text=one["source"], locator=one.get("locator", ""))
    return Case(
        id=f"{file}: {one['name']}",
        claim=Claim(
            path=one.get("path", leaf["path"]),
            value=one["value"],
            rung=Rung(one.get("rung", "llm")),
            source=source,
            quote=one.get("quote"),
        ),
        leaf=Leaf(**{**leaf, "enum": tuple(leaf.get("enum", ()))}),
        prompts=tuple(one.get("prompts", ())),
        expected=one,
    )
