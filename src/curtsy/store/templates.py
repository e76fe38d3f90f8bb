"""Templates of pages and the selectors learned for them.

Every function that changes a template, its pages or its selectors locks the template's row first, so that changes of
one template follow each other. `revision` increases with every retirement, correction and new selector. `learn`
does nothing if it is not the revision that was read: what was learned from an outdated state is not used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, text

from curtsy.store.rows import Bulk, Delete, Lock, is_postgresql, unique_sorted
from curtsy.store.template_rows import (
    Kind,
    NewSelector,
    Outcome,
    PageRow,
    Reading,
    SelectorRow,
    TemplateRow,
    page_of,
    selector_of,
    template_of,
    to_json,
)

#: of one URL shape; a site with more has no templates
MAX_TEMPLATES = 20
#: pages in a row of a newer template after which the selectors of an older one are retired
MAX_BEHIND = 5
#: pages in a row that state the field elsewhere, after which a selector is retired; more for one that is rarely used
MAX_MISSED = 12
_MAX_GAPS = 4
_MAX_KNOWN = 2_000


_COLUMNS = ", ".join(TemplateRow._fields)
_SELECTOR = ", ".join(SelectorRow._fields)
_OF_SHAPE = text(
    f"SELECT {_COLUMNS} FROM templates WHERE schema_hash = :schema_hash AND host = :host AND shape = :shape "
    "ORDER BY n DESC LIMIT :limit"
)
_ANY = text("SELECT 1 FROM templates WHERE schema_hash = :schema_hash LIMIT 1")
_GET = text(f"SELECT {_COLUMNS} FROM templates WHERE n = :n")
_lock = Lock("templates", "n bigint")
_LOCK_HOST = text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))")
_CREATE = text(
    "INSERT INTO templates (schema_hash, schema, host, shape, skeleton_key, skeleton, created_ms, seen_ms) VALUES "
    "(:schema_hash, :schema, :host, :shape, :skeleton_key, :skeleton, :now, :now) "
    "ON CONFLICT (schema_hash, host, shape, skeleton_key) DO UPDATE SET seen_ms = excluded.seen_ms RETURNING n"
)
_PAGE = text(
    "SELECT crawl, page, template, teaches, absent, at_ms FROM template_pages WHERE crawl = :crawl AND page = :page "
    "AND schema_hash = :schema_hash"
)
_TEACHING = text(
    "SELECT crawl, page, template, teaches, absent, at_ms FROM template_pages WHERE template = :template "
    "AND teaches = :teaches ORDER BY at_ms DESC, page LIMIT :limit"
)
_PUT_PAGE = text(
    "INSERT INTO template_pages (crawl, page, schema_hash, template, teaches, absent, at_ms) "
    "VALUES (:crawl, :page, :schema_hash, :template, :teaches, :absent, :at_ms) "
    "ON CONFLICT (crawl, page, schema_hash) DO UPDATE SET template = excluded.template, at_ms = excluded.at_ms, "
    "teaches = excluded.teaches OR template_pages.teaches, "
    "absent = CASE WHEN excluded.teaches THEN excluded.absent ELSE template_pages.absent END"
)
_SEEN = text("UPDATE templates SET pages = pages + :new, behind = 0, seen_ms = :now WHERE n = :n")
_READ = text("UPDATE templates SET known = :known, absent = :absent, asked = asked + :new WHERE n = :n")
_PASSED = text("UPDATE templates SET behind = behind + 1 WHERE n IN :ns").bindparams(bindparam("ns", expanding=True))
_BEHIND = text("SELECT n FROM templates WHERE n IN :ns AND behind >= :most ORDER BY n").bindparams(
    bindparam("ns", expanding=True)
)
_CHECK = text("UPDATE templates SET checked = pages WHERE n = :n AND pages - checked >= :every")
_REVISED = text("UPDATE templates SET revision = revision + 1, next_try = :next_try WHERE n = :n")
_ACTIVE = text(f"SELECT {_SELECTOR} FROM selectors WHERE template IN :ns AND state = 'active' ORDER BY n").bindparams(
    bindparam("ns", expanding=True)
)
_OF_TEMPLATE = text(f"SELECT {_SELECTOR} FROM selectors WHERE template = :template ORDER BY n")
_ADD = text(
    "INSERT INTO selectors (template, leaf, place, examples, tested, found, learned_ms) "
    "VALUES (:template, :leaf, :place, :examples, :tested, :found, :now)"
)
_USED = text("UPDATE selectors SET used = used + 1, missed = 0 WHERE n IN :ns").bindparams(
    bindparam("ns", expanding=True)
)
_MISSED = text("UPDATE selectors SET missed = missed + 1 WHERE n IN :ns").bindparams(bindparam("ns", expanding=True))
_RETIRE = text(
    "UPDATE selectors SET state = 'retired', ended_ms = :now, why = :why WHERE n IN :ns AND state = 'active'"
).bindparams(bindparam("ns", expanding=True))
_ONE = text(f"SELECT {_SELECTOR} FROM selectors WHERE n = :n")
_LISTED = (
    f"SELECT {', '.join(f's.{name}' for name in SelectorRow._fields)}, t.schema, t.schema_hash, t.host, t.shape, "
    "t.pages, t.asked FROM selectors s JOIN templates t ON t.n = s.template WHERE s.n > :after"
)


def of_shape(tx: Connection, schema_hash: str, host: str, shape: str) -> list[TemplateRow]:
    """The templates of a URL shape, newest first."""
    given = {"schema_hash": schema_hash, "host": host, "shape": shape, "limit": MAX_TEMPLATES}
    return [template_of(row) for row in tx.execute(_OF_SHAPE, given)]


def has_any(tx: Connection, schema_hash: str) -> bool:
    """Whether a schema has templates on any host."""
    return tx.execute(_ANY, {"schema_hash": schema_hash}).first() is not None


def get(tx: Connection, n: int) -> TemplateRow | None:
    row = tx.execute(_GET, {"n": n}).first()
    return None if row is None else template_of(row)


def active(tx: Connection, ns: Collection[int]) -> list[SelectorRow]:
    """The active selectors of these templates, oldest first."""
    return [selector_of(row) for row in tx.execute(_ACTIVE, {"ns": list(ns)})] if ns else []


def selectors_of(tx: Connection, template: int) -> list[SelectorRow]:
    """All selectors of a template, also retired ones."""
    return [selector_of(row) for row in tx.execute(_OF_TEMPLATE, {"template": template})]


def find_or_create(
    tx: Connection, kind: Kind, choose: Callable[[Sequence[TemplateRow]], TemplateRow | None], now_ms: int
) -> int | None:
    """Return the number of the template that `choose` finds among those of the URL shape; create it if needed.

    None: the shape has too many. Workers create the templates of a host one after the other, so that two of them never
    create two similar ones.
    """
    if is_postgresql(tx):
        tx.execute(_LOCK_HOST, {"key": f"template {kind.schema_hash} {kind.host}"})
    rows = of_shape(tx, kind.schema_hash, kind.host, kind.shape)
    found = choose(rows)
    if found is not None or len(rows) >= MAX_TEMPLATES:
        return None if found is None else found.n
    given = kind._asdict() | {"skeleton": json.dumps(sorted(kind.skeleton)), "now": now_ms}
    return int(tx.execute(_CREATE, given).scalar_one())


def page(tx: Connection, crawl: int, page: str, schema_hash: str) -> PageRow | None:
    row = tx.execute(_PAGE, {"crawl": crawl, "page": page, "schema_hash": schema_hash}).first()
    return None if row is None else page_of(row)


def pages_of(tx: Connection, template: int, teaches: bool, limit: int) -> list[PageRow]:
    """Pages that were read by the model or a person, or the others; newest first."""
    found = tx.execute(_TEACHING, {"template": template, "teaches": teaches, "limit": limit})
    return [page_of(row) for row in found]


# What happened on a page


def note_used(tx: Connection, template: int, crawl: int, page: str, outcome: Outcome, now_ms: int) -> bool:
    """A page belongs to the template; the model was not asked. False: the template was deleted."""
    known = _locked(tx, template, outcome.older)
    if known is None:
        return False
    _put_page(tx, known, crawl, page, (), now_ms, teaches=False)
    _count(tx, known, outcome, now_ms)
    return True


def note_read(tx: Connection, template: int, reading: Reading, outcome: Outcome) -> bool:
    """The model, or a person, has read a page of the template. False: the template was deleted."""
    known = _locked(tx, template, outcome.older)
    if known is None:
        return False
    new = _put_page(tx, known, reading.crawl, reading.page, reading.absent, reading.at_ms, teaches=True)
    places, absent = _merged(known, reading, new)
    tx.execute(_READ, {"n": template, "known": json.dumps(places), "absent": json.dumps(absent), "new": int(new)})
    _count(tx, known, outcome, reading.at_ms)
    return True


def _count(tx: Connection, template: TemplateRow, outcome: Outcome, now_ms: int) -> None:
    if outcome.used:
        tx.execute(_USED, {"ns": list(outcome.used)})
    wrong = dict(outcome.wrong)
    if outcome.missed:
        tx.execute(_MISSED, {"ns": list(outcome.missed)})
        wrong = {one.n: "missed" for one in active(tx, [template.n]) if _is_lost(one, template)} | wrong
    _retire(tx, template, wrong, now_ms)
    _pass(tx, outcome.older, now_ms)


def _is_lost(selector: SelectorRow, template: TemplateRow) -> bool:
    often = selector.missed * max(1, selector.used) >= _MAX_GAPS * template.pages
    return selector.missed >= MAX_MISSED and often


def claim_check(tx: Connection, template: int, every: int) -> bool:
    """Whether this worker must let the model check a page: one page of `every`."""
    return tx.execute(_CHECK, {"n": template, "every": every}).rowcount == 1


def _locked(tx: Connection, template: int, others: Collection[int] = ()) -> TemplateRow | None:
    _lock(tx, [(n,) for n in {template, *others}])
    return get(tx, template)


def _put_page(
    tx: Connection, template: TemplateRow, crawl: int, name: str, absent: Collection[str], now_ms: int, *, teaches: bool
) -> bool:
    """Whether the page teaches for the first time."""
    before = page(tx, crawl, name, template.schema_hash)
    given = {"crawl": crawl, "page": name, "schema_hash": template.schema_hash, "template": template.n}
    tx.execute(_PUT_PAGE, given | {"teaches": teaches, "absent": json.dumps(sorted(absent)), "at_ms": now_ms})
    is_new = before is None or before.template != template.n
    tx.execute(_SEEN, {"n": template.n, "new": int(is_new), "now": now_ms})
    return teaches and (is_new or not (before is not None and before.teaches))


def _merged(known: TemplateRow, reading: Reading, new: bool) -> tuple[dict[str, Any], dict[str, int]]:
    places: dict[str, Any] = dict(known.known)
    for key, found in reading.places.items():
        before = places.get(key)
        if before is None and len(places) >= _MAX_KNOWN:
            continue
        absent, there = before if before is not None else ((), ())
        places[key] = (sorted({*absent, *reading.absent}), sorted({*there, *found}))
    counts = dict(known.absent)
    for leaf in reading.absent if new else ():
        counts[leaf] = counts.get(leaf, 0) + 1
    return places, counts


def _pass(tx: Connection, older: Collection[int], now_ms: int) -> None:
    """Older templates of the shape did not match the page. One that does not match five times in a row is replaced."""
    if not older:
        return
    tx.execute(_PASSED, {"ns": list(older)})
    behind = list(tx.execute(_BEHIND, {"ns": list(older), "most": MAX_BEHIND}).scalars())
    for selector in active(tx, behind):
        retire(tx, selector.n, "layout", now_ms)


# Selectors


def learn(
    tx: Connection, template: int, revision: int, found: Sequence[NewSelector], next_try: int, now_ms: int
) -> bool:
    """Write learned selectors; False if the template has changed since it was read."""
    known = _locked(tx, template)
    if known is None or known.revision != revision:
        return False
    there = {(one.leaf, to_json(one.place)) for one in active(tx, [template])}
    fresh = {key: one for one in found if (key := (one.leaf, to_json(one.place))) not in there}
    for one in fresh.values():
        tx.execute(_ADD, one._asdict() | {"template": template, "place": to_json(one.place), "now": now_ms})
    revised = revision + bool(fresh)
    tx.execute(
        text("UPDATE templates SET revision = :revision, next_try = :next_try WHERE n = :n"),
        {"n": template, "revision": revised, "next_try": next_try},
    )
    return bool(fresh)


def retire(tx: Connection, n: int, why: str, now_ms: int) -> SelectorRow | None:
    """Retire one selector; None: it does not exist. Values before `now_ms` do not teach its field again."""
    found = selector(tx, n)
    known = None if found is None else _locked(tx, found.template)
    if known is not None:
        _retire(tx, known, {n: why}, now_ms)
    return None if known is None else selector(tx, n)


def revise(tx: Connection, template: int, wrong: Mapping[int, str], now_ms: int) -> None:
    """A person changed a record of the template: retire these selectors, and try to learn at once."""
    known = _locked(tx, template)
    if known is not None:
        _retire(tx, known, wrong, now_ms)
        tx.execute(_REVISED, {"n": template, "next_try": 0})


def _retire(tx: Connection, template: TemplateRow, wrong: Mapping[int, str], now_ms: int) -> None:
    for n, why in wrong.items():
        tx.execute(_RETIRE, {"ns": [n], "why": why, "now": now_ms})
    if wrong:
        # Its values must be read again on as many pages as learning needs.
        tx.execute(_REVISED, {"n": template.n, "next_try": template.asked + 3})


def selector(tx: Connection, n: int) -> SelectorRow | None:
    row = tx.execute(_ONE, {"n": n}).first()
    return None if row is None else selector_of(row)


def listed(
    tx: Connection, after: int = 0, limit: int = 100, *, host: str | None = None, schema: str | None = None,
    state: str | None = None, n: int | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Selectors with their templates, by number."""
    given: dict[str, Any] = {"after": after, "limit": limit}
    conditions = {"t.host": host, "t.schema": schema, "s.state": state, "s.n": n}
    query = _LISTED
    for column, value in conditions.items():
        if value is not None:
            name = column[2:] if column != "s.n" else "number"
            query += f" AND {column} = :{name}"
            given[name] = value
    rows = tx.execute(text(f"{query} ORDER BY s.n LIMIT :limit"), given)
    return [{**row._mapping, "place": json.loads(row.place)} for row in rows]


# Deleting

_delete_pages = Delete("template_pages", "crawl bigint, page text, schema_hash text")
_delete_selectors = Delete("selectors", "n bigint")
_delete_templates = Delete("templates", "n bigint")
_of_pages = Bulk(
    "SELECT t.crawl, t.page, t.schema_hash, t.template FROM v JOIN template_pages t ON t.crawl = v.crawl "
    "AND t.page = v.page",
    "crawl bigint, page text",
)
_EMPTY = text(
    "SELECT n FROM templates WHERE n IN :ns AND NOT EXISTS "
    "(SELECT 1 FROM template_pages p WHERE p.template = templates.n) ORDER BY n"
).bindparams(bindparam("ns", expanding=True))


def forget_pages(tx: Connection, subjects: Iterable[tuple[int, str]]) -> None:
    """Delete the rows of these pages (crawl, fingerprint). A template without pages is deleted with its selectors."""
    rows = _of_pages(tx, unique_sorted(subjects))
    if not rows:
        return
    concerned = unique_sorted(row[3] for row in rows)
    _lock(tx, [(n,) for n in concerned])
    _delete_pages(tx, [tuple(row[:3]) for row in rows])
    if empty := list(tx.execute(_EMPTY, {"ns": concerned}).scalars()):
        _delete_selectors.where(tx, "template IN :ns", {"ns": empty})
        _delete_templates(tx, [(n,) for n in empty])
