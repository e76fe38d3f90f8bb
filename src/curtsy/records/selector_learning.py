"""Learns the selectors of templates from records and stored pages.

    recall   before an extraction: what is known about the page's template; learns first what is due
    learn    new selectors of one template
    teach    a person has corrected a record: retire the selectors that were wrong, and learn at once

Examples are the pages of a template that the model or a person has read: their values come from their records, so that
corrections count. New selectors are tested on all stored pages of the template, up to 1,000 pages and 20 s.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from curtsy.content.document import Document
from curtsy.content.head import is_html
from curtsy.content.parser_limits import is_heavy
from curtsy.content.reading import ParseTimeout, within
from curtsy.core import clock
from curtsy.core.claims import Claim, Field, Rung, Source, SourceKind, Verdict
from curtsy.core.errors import CurtsyError, Damaged
from curtsy.core.observe import count, log
from curtsy.core.record import Record
from curtsy.core.settings import Settings
from curtsy.extract import learning
from curtsy.extract.learned import MIN_PAGES, Place, same_values, values_at
from curtsy.extract.learning import Example, Score
from curtsy.extract.places import PagePlaces, places_of, similarity, url_shape
from curtsy.extract.sources import PageSources
from curtsy.grounding import judge
from curtsy.grounding.schema import Leaf, Schema
from curtsy.records import evidence
from curtsy.records.page_templates import PageMemory, created, memory_of, spans_of, values_of, where
from curtsy.store import pages, records, sites, templates
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore, read_page
from curtsy.store.template_rows import NewSelector, Outcome, PageRow, Reading, TemplateRow

#: pages that the model or a person has read, newest first
_MAX_EXAMPLES = 60
_MAX_TESTED = 1_000
#: pages that must be read before the next attempt
_MAX_PAUSE = 16
#: CPU time of the search, and of the test
_TEST_S = 20.0
_CACHED_S = 2.0
#: locks for learning, and how long a worker waits for one that learns
_LOCKS = 8
_WAIT_S = 45.0
#: searching the place of a field may take this many times as long as reading a page
_SEARCH = 10
#: share of the found values that grounding may refuse
_MAX_REFUSED = 0.1
#: found values that must not all be the same, if the verified ones differ
_MIN_DIFFERENT = 10


#: store -> schema -> when it was found to have no templates
_without: WeakKeyDictionary[Store, dict[str, float]] = WeakKeyDictionary()


def has_templates(store: Store, schema: Schema) -> bool:
    """Whether the schema has templates. A negative answer is cached for two seconds: extraction without a model must
    not become slower.
    """
    known, now = _without.setdefault(store, {}), time.monotonic()
    if now - known.get(schema.hash, -_CACHED_S) < _CACHED_S:
        return False
    with store.read() as tx:
        found = templates.has_any(tx, schema.hash)
    if not found:
        known[schema.hash] = now
    return found


def recall(store: Store, segments: SegmentStore, settings: Settings, schema: Schema, page: PageSources) -> PageMemory:
    """What is known about the page's template. Learns first what is due; a failure of that is logged, not raised."""
    memory = memory_of(store, schema, page, settings.selector_check_every)
    due = [row for row in memory.rows if _is_due(row)]
    if not due:
        return memory
    for row in due:
        try:
            _learn_alone(store, segments, settings, schema, row.n)
        except CurtsyError as error:
            log("selectors_not_learned", level="warning", template=row.n, error=str(error))
    return memory_of(store, schema, page, settings.selector_check_every)


def _is_due(row: TemplateRow) -> bool:
    return row.asked >= max(row.next_try, MIN_PAGES)


def _learn_alone(store: Store, segments: SegmentStore, settings: Settings, schema: Schema, n: int) -> None:
    """Learn what no other worker has learned meanwhile. Others wait: until then, they would have to ask the model."""
    with store.lock(f"selectors-{n % _LOCKS}", _WAIT_S):
        with store.read() as tx:
            row = templates.get(tx, n)
        if row is not None and _is_due(row):
            learn(store, segments, settings, schema, row)


def learn(store: Store, segments: SegmentStore, settings: Settings, schema: Schema, row: TemplateRow) -> int:
    """Learn the selectors of a template, and return their number. A second attempt waits for more examples."""
    reader = _Reader(store, segments, settings)
    with store.read() as tx:
        before = templates.selectors_of(tx, row.n)
        read = templates.pages_of(tx, row.n, True, _MAX_EXAMPLES)
    ended = {one.leaf: one.ended_ms or 0 for one in before if one.state == "retired"}
    examples = [example for page in read if (example := _example(reader, schema, page, ended)) is not None]
    active: dict[str, list[Place]] = {}
    for one in before:
        if one.state == "active":
            active.setdefault(one.leaf, []).append(Place(**one.place))
    found = list(_places(settings, schema, examples, active))
    passed = _tested(reader, row, read, found) if found else []
    next_try = row.asked + min(_MAX_PAUSE, max(1, row.asked // 4))
    written = store.run(templates.learn, row.n, row.revision, passed, next_try, clock.now_ms())
    if written:
        count("selectors_learned", len(passed))
        log("selectors_learned", level="info", host=row.host, shape=row.shape, fields=[one.leaf for one in passed])
    return len(passed) if written else 0


def teach(
    store: Store, segments: SegmentStore, settings: Settings, schema: Schema, before: Record, after: Record, now_ms: int
) -> None:
    """Learn from a person's correction of the record of a page. It counts on every page, without a model too.

    The correction is already stored, with its evidence: whatever fails here is logged, not raised.
    """
    if not settings.learn_selectors or schema.per != "page" or after.kind != "page" or after.ordinal:
        return
    try:
        _without.pop(store, None)
        n = _note_correction(_Reader(store, segments, settings), schema, before, after, now_ms)
        with store.read() as tx:
            row = None if n is None else templates.get(tx, n)
        if row is not None:
            learn(store, segments, settings, schema, row)
    except Exception as error:  # a decision must not look as if it had failed
        log("selectors_not_learned", level="warning", record=after.n, error=f"{type(error).__name__}: {error}")


def _note_correction(reader: _Reader, schema: Schema, before: Record, after: Record, now_ms: int) -> int | None:
    """The number of the template that the page belongs to."""
    store, places = reader.store, reader.places(after.crawl, after.subject)
    n = None if places is None else created(store, schema, after.url, places, now_ms)
    if places is None or n is None:
        return None
    old, new = ([field_from(data) for data in record.fields] for record in (before, after))
    changed = _changed(schema, old, new)
    by_selector = {schema.leaf_for(one.path).path for one in old if one.rung is Rung.LEARNED} & changed
    with store.read() as tx:
        page = templates.page(tx, after.crawl, after.subject, schema.hash)
        wrong = {one.n: "corrected" for one in templates.active(tx, [n]) if one.leaf in by_selector}
    stated = {schema.leaf_for(one.path).path for one in new}
    absent = {*(() if page is None else page.absent), *changed} - stated
    id = pages.page_id(after.crawl, bytes.fromhex(after.subject))
    reading = Reading(after.crawl, after.subject, where(schema, id, places, new), absent, now_ms)
    store.run(templates.note_read, n, reading, Outcome())
    store.run(templates.revise, n, wrong, now_ms)
    return n


def _changed(schema: Schema, old: Sequence[Field], new: Sequence[Field]) -> set[str]:
    """The fields whose values differ."""
    then, now = (values_of(schema, fields, *Rung) for fields in (old, new))
    return {leaf for leaf in {*then, *now} if not same_values(then.get(leaf, ()), now.get(leaf, ()))}


def _places(
    settings: Settings, schema: Schema, examples: Sequence[Example], active: Mapping[str, Sequence[Place]]
) -> Iterator[tuple[Leaf, Place, Score]]:
    """Yield the new places of all fields. Pages that were made to take long end the search."""
    seconds, began = settings.parse_timeout_s * _SEARCH, time.thread_time()
    for leaf in schema.leaves:
        if time.thread_time() - began > _TEST_S:
            return
        try:
            made = within(seconds, learning.learn, leaf, examples, active.get(leaf.path, ()))
        except ParseTimeout:
            log("selectors_not_learned", level="warning", field=leaf.path, error="the search took too long")
            continue
        yield from ((leaf, place, score) for place, score in made)


# Examples


def _example(reader: _Reader, schema: Schema, page: PageRow, ended: Mapping[str, int]) -> Example | None:
    places = reader.places(page.crawl, page.page)
    if places is None:
        return None
    with reader.store.read() as tx:
        record = _standing(records.of_subject(tx, page.crawl, page.page), schema.hash)
    fields = [] if record is None else [field_from(data) for data in record.fields]
    return example_of(schema, places, page, fields, ended)


def _standing(found: Sequence[Record], schema_hash: str) -> Record | None:
    """The newest record that is not rejected; a reviewed one comes first."""
    fitting = [
        one
        for one in found
        if one.schema_hash == schema_hash and one.ordinal == 0 and one.status in ("published", "held")
    ]
    return max(fitting, key=lambda one: (one.reviewed_ms is not None, one.version), default=None)


def example_of(
    schema: Schema, places: PagePlaces, page: PageRow, fields: Sequence[Field], ended: Mapping[str, int]
) -> Example:
    """What a page teaches. Values from before the retirement of a field's selector count only if a person gave them."""
    given = values_of(schema, fields, Rung.PERSON)
    values: dict[str, list[Any]] = {leaf: [] for leaf in page.absent} | values_of(schema, fields, Rung.LLM) | given
    fresh = {leaf: many for leaf, many in values.items() if leaf in given or page.at_ms > ended.get(leaf, 0)}
    cited: dict[str, list[tuple[int, int]]] = {}
    id = pages.page_id(page.crawl, bytes.fromhex(page.page))
    for one in fields:
        cited.setdefault(schema.leaf_for(one.path).path, []).extend(spans_of(one, id))
    return Example(places, fresh, cited, frozenset(given))


def field_from(data: dict[str, Any]) -> Field:
    """A stored field, as far as learning needs it."""
    return Field(
        path=data["path"], value=data["value"], rung=Rung(data["rung"]), verdict=Verdict(data["verdict"]),
        evidence=tuple(map(evidence.from_json, data["evidence"])),
    )  # fmt: skip


# The test on all stored pages


class _Tally:
    """How a new selector does on pages whose values are not verified."""

    def __init__(self) -> None:
        self.tested = self.found = self.refused = 0
        self.values: set[str] = set()

    def add(self, place: Place, leaf: Leaf, places: PagePlaces) -> None:
        self.tested += 1
        values = values_at(place, leaf, places)
        if values is None:
            return
        self.found += 1
        self.values.add(repr([one.value for one in values]))
        source = Source(SourceKind.TEXT, "", "", places.text)
        claims = [
            Claim(path=leaf.path, value=one.value, rung=Rung.LEARNED, source=source, span=(one.start, one.end))
            for one in values
        ]
        self.refused += not all(judge.is_grounded(judge.judge(claim, leaf)) for claim in claims)

    def passes(self, score: Score) -> bool:
        constant = self.found >= _MIN_DIFFERENT and len(self.values) == 1 and score.different
        return self.refused <= _MAX_REFUSED * self.found and not constant


def _tested(
    reader: _Reader, row: TemplateRow, read: Sequence[PageRow], found: Sequence[tuple[Leaf, Place, Score]]
) -> list[NewSelector]:
    tallies = [_Tally() for _ in found]
    for places in reader.others(row, read):
        for (leaf, place, _), tally in zip(found, tallies, strict=True):
            tally.add(place, leaf, places)
    passed = []
    for (leaf, place, score), tally in zip(found, tallies, strict=True):
        if tally.passes(score):
            tested, hits = score.right + score.wrong + tally.tested, score.right + score.wrong + tally.found
            passed.append(NewSelector(leaf.path, place.as_json(), score.right, tested, hits))
    return passed


class _Reader:
    """Reads stored pages as places."""

    def __init__(self, store: Store, segments: SegmentStore, settings: Settings) -> None:
        self.store = store
        self._segments, self._settings = segments, settings

    def places(self, crawl: int, page: str) -> PagePlaces | None:
        """The places of a stored page; None if it is gone, not HTML, or takes too long."""
        with self.store.read() as tx:
            row = pages.get(tx, crawl, bytes.fromhex(page))
            try:
                stored = None if row is None else read_page(tx, self._segments, row)
            except Damaged:
                return None
        if row is None or stored is None or not is_html(row.content_type, stored.body) or is_heavy(stored.body):
            return None
        try:
            return within(self._settings.parse_timeout_s, _read, stored.body, row.content_type, row.url)
        except ParseTimeout:
            return None

    def others(self, row: TemplateRow, read: Sequence[PageRow]) -> Iterator[PagePlaces]:
        """The other stored pages of the template, of the crawls that its pages belong to."""
        known = {(one.crawl, one.page) for one in read}
        began = time.thread_time()
        tested = 0
        for crawl in dict.fromkeys(one.crawl for one in read):
            for page in self._of_shape(crawl, read, row):
                if tested >= _MAX_TESTED or time.thread_time() - began > _TEST_S:
                    return
                places = None if (crawl, page) in known else self.places(crawl, page)
                if places is not None and similarity(places.skeleton, row.skeleton):
                    tested += 1
                    yield places

    def _of_shape(self, crawl: int, read: Sequence[PageRow], row: TemplateRow) -> list[str]:
        some = next(one for one in read if one.crawl == crawl)
        with self.store.read() as tx:
            page = pages.get(tx, crawl, bytes.fromhex(some.page))
            listed = [] if page is None else sites.pages_of(tx, crawl, page.host)
        return [fp for fp, url, _, is_file in listed if not is_file and url_shape(url) == row.shape]


def _read(body: bytes, content_type: str | None, url: str) -> PagePlaces:
    return places_of(Document.parse(body, content_type, url))
