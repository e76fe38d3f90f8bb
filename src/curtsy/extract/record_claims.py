"""Claims of one record from all sources: structured data, selectors, learned selectors, a language model.

The order is that of their cost. Each source is used only for values that the previous ones did not find.
Selectors and the visible text are also read for values that structured data states and that can be contradicted.

`sources_of` parses a page, `choose` selects the pages of a site to use, `extract` collects the claims of one record, in
order of preference. A leaf is missing if `grounding.judge` accepts none of its claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

from curtsy.core.claims import Claim, Extraction
from curtsy.extract import (
    articles,
    contacts,
    facts,
    organizations,
    other_organizations,
    postal_addresses,
    prices,
    recipes,
    selectors,
    site_name,
    structured,
    unlabelled_facts,
)
from curtsy.extract.endpoint import ModelFault
from curtsy.extract.learned import LearnedClaims
from curtsy.extract.page_selection import Candidate, applies, choose
from curtsy.extract.sources import PageSources, sources_of
from curtsy.grounding import judge
from curtsy.grounding.contradictions import is_compared
from curtsy.grounding.schema import Leaf, Schema

__all__ = ["Candidate", "LearnedSelectors", "PageSources", "ValueFinder", "applies", "choose", "extract", "sources_of"]

#: claims of one source for a leaf with a single value; the first grounded claim wins
_MAX_CLAIMS = 6
#: the same for a leaf of a list
_MAX_ITEMS = 100


class ValueFinder(Protocol):
    """Finds what structured data and selectors do not: a language model."""

    def ask(self, schema: Schema, leaves: Sequence[Leaf], pages: Sequence[PageSources]) -> Extraction: ...


class LearnedSelectors(Protocol):
    """What was learned from other pages of the same template."""

    def find(self, missing: Sequence[Leaf]) -> LearnedClaims: ...


class _Search(NamedTuple):
    """What a source searches for, and where."""

    schema: Schema
    pages: Sequence[PageSources]
    #: leaves without a grounded claim, and for some sources those whose values are compared
    wanted: Sequence[Leaf]
    #: claims of the previous sources
    found: Sequence[Claim]


class _ClaimSource(NamedTuple):
    find: Callable[[_Search], Iterable[Claim]]
    #: also searches values that a previous source found, so that contradictions are noticed
    compares: bool = False


def _structured(search: _Search) -> Iterable[Claim]:
    schema, pages = search.schema, search.pages
    of_site = _is_of_organization(schema)
    for page in pages:
        known = partial(site_name.is_certain, pages=pages) if of_site else _anything
        found = articles.credible(schema, page, structured.claims(schema, page, search.wanted, known))
        yield from contacts.fitting(_with_plain_names(found, pages), pages) if of_site else found


def _with_plain_names(claims: Iterable[Claim], pages: Sequence[PageSources]) -> list[Claim]:
    """Names with a description (`My Paper Shop - Discount Party Supplies`) are left to `site_name`."""
    return [one for one in claims if one.path != "/name" or site_name.is_plain(str(one.value), pages)]


def _anything(_name: str) -> bool:
    return True


def _is_of_organization(schema: Schema) -> bool:
    """One record per site, about its organization."""
    return schema.per == "site" and "Organization" in schema.types


def _site_name(search: _Search) -> Iterable[Claim]:
    is_wanted = any(leaf.path == "/name" and leaf.type == "string" for leaf in search.wanted)
    if not is_wanted or not search.pages or not _is_of_organization(search.schema):
        return []
    return site_name.claims("/name", search.pages)


def _fallbacks(search: _Search) -> Iterable[Claim]:
    """The selectors for leaves of which nothing else has found a value."""
    leaves = [leaf for leaf in search.wanted if any(one.fallback for one in search.schema.selectors.get(leaf.path, ()))]
    return _selectors(search._replace(wanted=leaves), fallback=True) if leaves else ()


def _selectors(search: _Search, *, fallback: bool = False) -> Iterable[Claim]:
    """Leaves that are the subject of others come first, on all pages; the leaves of a list are found together."""
    schema, pages = search.schema, search.pages
    known: dict[str, list[str]] = {}
    _learn(known, search.found)
    others = other_organizations.names(pages) if _is_of_organization(schema) else frozenset()
    subjects = {_list_of(one.subject) for many in schema.selectors.values() for one in many if one.subject}
    for some in (
        [leaf for leaf in search.wanted if (_list_of(leaf.path) in subjects) is first] for first in (True, False)
    ):
        for page in pages:
            claims = selectors.claims(schema, page, some, known, fallback=fallback)
            if _is_of_organization(schema):
                claims = other_organizations.without(contacts.fitting(claims, pages), page, others)
            _learn(known, claims)
            yield from claims


def _addresses(search: _Search) -> Iterable[Claim]:
    schema = search.schema
    names = [claim.value for claim in search.found if claim.path == "/name" and isinstance(claim.value, str)]
    wanted = [leaf for leaf in search.wanted if organizations.has_lent(schema, leaf, "/contact/address")]
    for leaf in wanted if _is_of_organization(schema) else ():
        for page in search.pages:
            yield from postal_addresses.claims(leaf.path, page, names)


def _articles(search: _Search) -> Iterable[Claim]:
    schema, wanted = search.schema, search.wanted
    unknown = _missing(schema, search.found)
    compared = [leaf for leaf in wanted if leaf not in unknown]
    for page in search.pages if schema.per == "page" else ():
        yield from articles.claims(schema, page, wanted, compared)
        yield from prices.claims(schema, page, wanted, compared)
        yield from recipes.claims(page, [leaf for leaf in wanted if leaf not in compared])


def _facts(search: _Search) -> Iterable[Claim]:
    for page in search.pages if search.schema.per == "page" else ():
        found = list(facts.claims(search.schema, page, search.wanted))
        known = {one.path for one in (*search.found, *found)}
        yield from found
        yield from unlabelled_facts.claims(search.schema, page, search.wanted, known)


def _headings(search: _Search) -> Iterable[Claim]:
    """The name of an item of which the page states other values."""
    if not search.found or search.schema.per == "site" or not search.schema.types:
        return
    for leaf in search.wanted:
        if leaf.path in ("/name", "/title") and leaf.type == "string":
            for page in search.pages:
                yield from articles.heading(page, leaf)


#: in the order in which they are tried
_SOURCES = (
    _ClaimSource(_structured),
    _ClaimSource(_site_name),
    _ClaimSource(_selectors, compares=True),
    _ClaimSource(_addresses),
    _ClaimSource(_fallbacks),
    _ClaimSource(_articles, compares=True),
    _ClaimSource(_facts),
    _ClaimSource(_headings),
)


def extract(
    schema: Schema,
    pages: Sequence[PageSources],
    model: ValueFinder | None = None,
    learned: LearnedSelectors | None = None,
) -> Extraction:
    """Return all claims for one record from these pages; the most relevant page comes first.

    If the learned selectors find all that is missing, there is no question to the model. On any other page, what the
    model says counts. A fault of the model is part of the result; then trusted values of the learned selectors replace
    missing ones.
    """
    schema = organizations.adopted(recipes.typed(schema))
    collected = _Claims(schema)
    for source in _SOURCES:
        missing = _missing(schema, collected.claims)
        compared = _compared(schema, missing) if source.compares else []
        if missing or compared:
            collected.add(source.find(_Search(schema, pages, [*missing, *compared], collected.claims)))
    missing = _missing(schema, collected.claims)
    by_learned = learned.find(missing) if learned is not None and missing else None
    if by_learned is not None and (by_learned.is_complete or model is None):
        collected.add(by_learned.claims if by_learned.is_complete else by_learned.trusted)
        return Extraction(claims=tuple(collected.claims))
    if model is None or not missing or not pages:
        return Extraction(claims=tuple(collected.claims))
    answered = _answered(model, schema, missing, pages)
    collected.add(answered.claims)
    if by_learned is not None and answered.fault is not None:
        collected.add(one for one in by_learned.trusted if schema.leaf_for(one.path).path in answered.unanswered)
    asked = tuple(leaf.path for leaf in missing if leaf.path not in answered.unanswered)
    return replace(answered, claims=tuple(collected.claims), asked=asked)


def _answered(model: ValueFinder, schema: Schema, missing: Sequence[Leaf], pages: Sequence[PageSources]) -> Extraction:
    """If the model fails, only the values that it did not return are missing."""
    try:
        return model.ask(schema, missing, pages)
    except ModelFault as fault:
        return Extraction(claims=fault.claims, usage=fault.usage, fault=fault, unanswered=fault.unanswered)


def _compared(schema: Schema, missing: Sequence[Leaf]) -> list[Leaf]:
    return [leaf for leaf in schema.leaves if leaf not in missing and is_compared(schema, leaf)]


def _learn(known: dict[str, list[str]], claims: Iterable[Claim]) -> None:
    for claim in claims:
        if isinstance(claim.value, str):
            known.setdefault(claim.path, []).append(claim.value)


def _missing(schema: Schema, found: Sequence[Claim]) -> list[Leaf]:
    """Return leaves without a grounded claim. A list is found or missing as a whole: its items come from one source."""
    held: set[str] = set()
    for claim in found:
        leaf = schema.leaf_for(claim.path)
        if _list_of(leaf.path) not in held and judge.is_grounded(judge.judge(claim, leaf)):
            held.add(_list_of(leaf.path))
    return [leaf for leaf in schema.leaves if _list_of(leaf.path) not in held]


def _list_of(path: str) -> str:
    """Return the list that contains a leaf, or the leaf itself."""
    return path.partition("/*")[0] if "/*" in path else path


class _Claims:
    """The claims of a record: items of lists are numbered over pages and sources, and their number is limited."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.claims: list[Claim] = []
        #: of each leaf and source
        self._counts: Counter[tuple[str, str]] = Counter()
        #: (list, source, page, number there) -> number in the record
        self._numbers: dict[tuple[str, str, str, str], int] = {}
        self._lengths: Counter[str] = Counter()

    def add(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            try:
                leaf = self._schema.leaf_for(claim.path)
            except KeyError:
                continue
            self._counts[leaf.path, claim.rung] += 1
            if self._counts[leaf.path, claim.rung] <= (_MAX_ITEMS if leaf.many else _MAX_CLAIMS):
                self.claims.append(self._numbered(claim, leaf) if leaf.many else claim)

    def _numbered(self, claim: Claim, leaf: Leaf) -> Claim:
        name = _list_of(leaf.path)
        number, slash, rest = claim.path[len(name) + 1 :].partition("/")
        key = (name, claim.rung.value, claim.source.page, number)
        if key not in self._numbers:
            self._numbers[key] = self._lengths[name]
            self._lengths[name] += 1
        return replace(claim, path=f"{name}/{self._numbers[key]}{slash}{rest}")
