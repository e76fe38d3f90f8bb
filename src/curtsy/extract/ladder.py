"""The ladder: structured data, then selectors, then whoever is asked, each only for what is still missing.

`sources_of` opens a page, `choose` says which pages of a site are worth opening, `climb` gathers the claims of one
record from them, in the order in which they are to be preferred. What is missing is what `ground` would not let pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from curtsy.core.claims import Claim, Extraction
from curtsy.extract import selectors, structured
from curtsy.extract.page_selection import Candidate, applies, choose
from curtsy.extract.sources import PageSources, sources_of
from curtsy.grounding import judge
from curtsy.grounding.schema import Leaf, Schema

__all__ = ["Asker", "Candidate", "PageSources", "applies", "choose", "climb", "sources_of"]

#: of one leaf that has one value; the first that is grounded wins, the others are its rivals
_MAX_RIVALS = 6
_MAX_ITEMS = 100


class Asker(Protocol):
    """Whoever finds what structured data and selectors do not: a language model."""

    def ask(self, schema: Schema, leaves: Sequence[Leaf], pages: Sequence[PageSources]) -> Extraction: ...


def climb(schema: Schema, pages: Sequence[PageSources], ask: Asker | None = None) -> Extraction:
    """All claims for one record from these pages, the most telling page first."""
    gathering = _Gathering(schema)
    for rung in (_structured, _selectors):
        if missing := _missing(schema, gathering.claims):
            gathering.add(rung(schema, pages, missing, gathering.claims))
    missing = _missing(schema, gathering.claims)
    if ask is None or not missing or not pages:
        return Extraction(claims=tuple(gathering.claims))
    asked = ask.ask(schema, missing, pages)
    gathering.add(asked.claims)
    return Extraction(claims=tuple(gathering.claims), usage=asked.usage)


def _structured(
    schema: Schema, pages: Sequence[PageSources], missing: Sequence[Leaf], _found: Sequence[Claim]
) -> Iterable[Claim]:
    for page in pages:
        yield from structured.claims(schema, page, missing)


def _selectors(
    schema: Schema, pages: Sequence[PageSources], missing: Sequence[Leaf], found: Sequence[Claim]
) -> Iterable[Claim]:
    """Those leaves first that others are about, on all pages; the leaves of a list are found together."""
    known: dict[str, list[str]] = {}
    _learn(known, found)
    subjects = {_list_of(one.subject) for many in schema.selectors.values() for one in many if one.subject}
    for some in ([leaf for leaf in missing if (_list_of(leaf.path) in subjects) is first] for first in (True, False)):
        for page in pages:
            claims = selectors.claims(schema, page, some, known)
            _learn(known, claims)
            yield from claims


def _learn(known: dict[str, list[str]], claims: Iterable[Claim]) -> None:
    for claim in claims:
        if isinstance(claim.value, str):
            known.setdefault(claim.path, []).append(claim.value)


def _missing(schema: Schema, found: Sequence[Claim]) -> list[Leaf]:
    """Leaves without a claim that will hold. A list is found or missing as a whole: its items come from one rung."""
    held: set[str] = set()
    for claim in found:
        leaf = schema.leaf_for(claim.path)
        if _list_of(leaf.path) not in held and judge.is_grounded(judge.judge(claim, leaf)):
            held.add(_list_of(leaf.path))
    return [leaf for leaf in schema.leaves if _list_of(leaf.path) not in held]


def _list_of(path: str) -> str:
    """The list that a leaf is in, or the leaf itself."""
    return path.partition("/*")[0] if "/*" in path else path


class _Gathering:
    """The claims of a record as they come: items of lists numbered on over pages and rungs, none beyond use."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.claims: list[Claim] = []
        #: of each leaf and rung
        self._counts: Counter[tuple[str, str]] = Counter()
        #: (list, rung, page, number there) -> number in the record
        self._numbers: dict[tuple[str, str, str, str], int] = {}
        self._lengths: Counter[str] = Counter()

    def add(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            try:
                leaf = self._schema.leaf_for(claim.path)
            except KeyError:
                continue
            self._counts[leaf.path, claim.rung] += 1
            if self._counts[leaf.path, claim.rung] <= (_MAX_ITEMS if leaf.many else _MAX_RIVALS):
                self.claims.append(self._numbered(claim, leaf) if leaf.many else claim)

    def _numbered(self, claim: Claim, leaf: Leaf) -> Claim:
        name = _list_of(leaf.path)
        number, slash, rest = claim.path[len(name) + 1 :].partition("/")
        key = (name, claim.rung.value, claim.source.page, number)
        if key not in self._numbers:
            self._numbers[key] = self._lengths[name]
            self._lengths[name] += 1
        return replace(claim, path=f"{name}/{self._numbers[key]}{slash}{rest}")
