"""Templates in the store: using them for a page, and updating them from it.

    recall       before an extraction: the templates of the page's URL shape; learns what is due
    PageMemory   during it: the template that the page belongs to, and what its selectors find
    note         after it: which selectors were right, which places the model has seen

docs/decisions/0090-learned-selectors.md has the rules, and the guarantees for concurrent workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from curtsy.core import clock
from curtsy.core.claims import Claim, Extraction, Field, Rung, SourceKind
from curtsy.core.model import Crawl
from curtsy.core.observe import count
from curtsy.extract import learned
from curtsy.extract.learned import Known, LearnedClaims, Place, Selector, Template
from curtsy.extract.places import Block, PagePlaces, digest, places_of, similarity, url_shape
from curtsy.extract.sources import PageSources
from curtsy.grounding import judge
from curtsy.grounding.schema import Leaf, Schema
from curtsy.store import templates
from curtsy.store.engine import Store
from curtsy.store.template_rows import Kind, Outcome, Reading, SelectorRow, TemplateRow

#: notes of withheld values that the page does not state
_INVENTED = frozenset(("quote_not_found", "no_quote", "echo"))


class PageMemory:
    """What is known about the template of one page."""

    def __init__(
        self, store: Store, schema: Schema, page: PageSources, rows: Sequence[TemplateRow],
        active: Sequence[SelectorRow], every: int,
    ) -> None:  # fmt: skip
        self.schema, self.page, self.rows = schema, page, rows
        self._store, self._active, self._every = store, active, every
        #: None: nothing was missing, so nothing was searched
        self.seen: LearnedClaims | None = None
        self.places: PagePlaces | None = None
        self.row: TemplateRow | None = None

    def find(self, missing: Sequence[Leaf]) -> LearnedClaims:
        """What the selectors of its template find for these fields."""
        self.seen = LearnedClaims()
        if self.page.document is None:
            return self.seen
        self.places = places_of(self.page.document)
        self.row = best(self.rows, self.places)
        if self.row is not None:
            template = template_of(self.row, self.selectors)
            self.seen = learned.find(template, self.schema, self.page, self.places, missing)
            if self.seen.is_complete and self._is_check(self.row):
                self.seen = replace(self.seen, is_complete=False)  # the model reads it too
        return self.seen

    def _is_check(self, row: TemplateRow) -> bool:
        is_due = self._every > 0 and row.pages - row.checked >= self._every
        return is_due and self._store.run(templates.claim_check, row.n, self._every)

    @property
    def selectors(self) -> list[SelectorRow]:
        """The active ones of the page's template."""
        return [] if self.row is None else [one for one in self._active if one.template == self.row.n]

    @property
    def older(self) -> list[int]:
        """Older templates of the shape that are not replaced yet."""
        if self.row is None:
            return []
        passed = [one for one in self.rows if one.n < self.row.n]
        return [one.n for one in passed if one.behind < templates.MAX_BEHIND]


def best(rows: Sequence[TemplateRow], places: PagePlaces) -> TemplateRow | None:
    """The most similar template; of equals, the oldest."""
    scored = [(similarity(places.skeleton, row.skeleton), -row.n, row) for row in rows]
    found = max(scored, default=None, key=lambda one: one[:2])
    return found[2] if found is not None and found[0] > 0 else None


def template_of(row: TemplateRow, selectors: Sequence[SelectorRow]) -> Template:
    known = {key: Known(absent=frozenset(absent), found=frozenset(found)) for key, (absent, found) in row.known.items()}
    made = tuple(Selector(n=one.n, leaf=one.leaf, place=Place(**one.place)) for one in selectors)
    return Template(known=known, absent=row.absent, selectors=made)


def place_of_page(url: str) -> tuple[str, str]:
    """The host and the URL shape of a page."""
    return urlsplit(url).netloc.lower(), url_shape(url)


def memory_of(store: Store, schema: Schema, page: PageSources, check_every: int) -> PageMemory:
    host, shape = place_of_page(page.url)
    with store.read() as tx:
        rows = templates.of_shape(tx, schema.hash, host, shape)
        active = templates.active(tx, [row.n for row in rows])
    return PageMemory(store, schema, page, rows, active, check_every)


# After an extraction


def note(
    store: Store, crawl: Crawl, subject: str, memory: PageMemory, found: Extraction, fields: Sequence[Field]
) -> None:
    """Update the template of a page from its extraction."""
    places, seen = memory.places, memory.seen
    if seen is None or places is None or not places.skeleton:
        return
    now_ms = clock.now_ms()
    if found.asked:
        n = memory.row.n if memory.row is not None else created(store, memory.schema, memory.page.url, places, now_ms)
        if n is not None:
            said = values_of(memory.schema, fields, Rung.LLM)
            absent = _absent(memory.schema, found, fields)
            reading = Reading(crawl.n, subject, where(memory.schema, memory.page.page, places, fields), absent, now_ms)
            with store.read() as tx:
                before = [leaf for one in templates.pages_of(tx, n, True, 1) for leaf in one.absent]
            store.run(templates.note_read, n, reading, _judged(memory, seen, said, absent, before))
    elif memory.row is not None:
        outcome = Outcome(used=seen.used, missed=_unused(memory, seen), older=memory.older)
        store.run(templates.note_used, memory.row.n, crawl.n, subject, outcome, now_ms)
        count("pages_by_learned_selectors", int(seen.is_complete))


def created(store: Store, schema: Schema, url: str, places: PagePlaces, now_ms: int) -> int | None:
    """Return the template of a page; create it if needed. None: its URL shape has too many."""
    if not places.skeleton:
        return None
    host, shape = place_of_page(url)
    key = digest("\n".join(sorted(places.skeleton)))
    kind = Kind(schema.hash, schema.name, host, shape, key, places.skeleton)
    n: int | None = store.run(templates.find_or_create, kind, lambda rows: best(rows, places), now_ms)
    return n


def values_of(schema: Schema, fields: Sequence[Field], *rungs: Rung) -> dict[str, list[Any]]:
    """Field -> its verified values by these rungs, in their order."""
    made: dict[str, list[Any]] = {}
    for one in fields:
        if one.rung in rungs and judge.is_grounded(one):
            made.setdefault(schema.leaf_for(one.path).path, []).append(one.value)
    return made


def _absent(schema: Schema, found: Extraction, fields: Sequence[Field]) -> frozenset[str]:
    """The requested fields that the model did not find, or for which it gave words that the page does not have. Any
    other withheld value may be on the page.
    """
    stated = {schema.leaf_for(one.path).path for one in fields if one.note not in _INVENTED}
    return frozenset(found.asked) - stated


def where(schema: Schema, page: str, places: PagePlaces, fields: Sequence[Field]) -> dict[str, set[str]]:
    """Place -> fields whose evidence is there; for all places of the page."""
    made: dict[str, set[str]] = {key: set() for key in places.keys}
    for one in fields:
        for start, end in spans_of(one, page):
            for block in _blocks_at(places, start, end):
                if (key := places.key(block)) is not None:
                    made[key].add(schema.leaf_for(one.path).path)
    return made


def _blocks_at(places: PagePlaces, start: int, end: int) -> list[Block]:
    """The blocks within a span, and the smallest around it."""
    within = [one for one in places.blocks if start <= one.start and one.end <= end]
    around = [one for one in places.blocks if one.start <= start and end <= one.end]
    return within + ([min(around, key=lambda one: one.end - one.start)] if around else [])


def spans_of(field: Field, page: str) -> list[tuple[int, int]]:
    """The spans of a field's evidence in the text of a page."""
    if not judge.is_grounded(field):
        return []
    return [(one.start, one.end) for one in field.evidence if one.source is SourceKind.TEXT and one.page == page]


def _judged(
    memory: PageMemory,
    seen: LearnedClaims,
    said: Mapping[str, Sequence[Any]],
    absent: frozenset[str],
    before: Sequence[str],
) -> Outcome:
    """Compare the selectors with the model. It may overlook a value once: only if it found none on the page before
    either, or if something is new on this page, a selector that found one is wrong.
    """
    used: list[int] = []
    missed: list[int] = []
    wrong: dict[int, str] = {}
    by_leaf = _claimed(memory.schema, seen.claims)
    for one in memory.selectors:
        values = by_leaf.get(one.leaf)
        stated = said.get(one.leaf)
        if values is not None and one.n in seen.used:
            if stated is not None and learned.same_values(values, stated):
                used.append(one.n)
            elif stated is not None or (one.leaf in absent and (seen.has_new or one.leaf in before)):
                wrong[one.n] = "contradicted"
        elif stated is not None and one.n not in seen.used:
            missed.append(one.n)
    return Outcome(used, missed, wrong, memory.older)


def _unused(memory: PageMemory, seen: LearnedClaims) -> list[int]:
    """The selectors that found nothing for fields that others found."""
    found = {one.leaf for one in memory.selectors if one.n in seen.used}
    return [one.n for one in memory.selectors if one.leaf in found and one.n not in seen.used]


def _claimed(schema: Schema, claims: Sequence[Claim]) -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = {}
    for claim in claims:
        made.setdefault(schema.leaf_for(claim.path).path, []).append(claim.value)
    return made
