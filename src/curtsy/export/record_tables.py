"""The published records of a crawl as flat tables with their evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.export import flat
from curtsy.export.flat import Column, Layout, Row
from curtsy.export.tables import Table
from curtsy.records import plan, serialize
from curtsy.store import records
from curtsy.store.engine import Store

#: of a crawl whose schema is unknown here: all values as one column
_UNKNOWN = Layout((Column("data", "json", ()),), ())


def tables(store: Store, crawl: Crawl, lists_as_json: bool = False) -> list[Table]:
    """The tables of a crawl: records, a table per list, evidence. UsageError if there is nothing to export."""
    check(store, crawl)
    layout = layout_of(store, crawl, lists_as_json)

    def each(make: Callable[[Record], Iterator[Row]]) -> Iterator[Row]:
        for record in serialize.of_crawl(store, crawl.id):
            yield from make(record)

    lists: list[Table] = [Table(one.name, one.kinds, partial(each, one.rows)) for one in layout.lists]
    return [
        Table("records", layout.kinds, partial(each, lambda record: iter((layout.row(record),)))),
        *lists,
        Table("evidence", flat.EVIDENCE, partial(each, flat.evidence)),
    ]


def layout_of(store: Store, crawl: Crawl, lists_as_json: bool = False) -> Layout:
    """The columns of the crawl's schema."""
    made = plan.of_hashes(store, crawl.schema or "", crawl.schema_hash)
    return _UNKNOWN if made is None or not made.schema.leaves else flat.layout_of(made.schema, lists_as_json)


def check(store: Store, crawl: Crawl) -> None:
    """Raise UsageError if the crawl has no published record; it says what to do."""
    if crawl.schema is None:
        raise UsageError(
            f"Crawl {crawl.id} has no schema, so it has no records. Make some from its pages with: "
            f"curtsy extract --crawl {crawl.id} --schema SCHEMA"
        )
    with store.read() as tx:
        found = records.counts(tx, crawl.n, crawl.schema_hash)
    if found.get("published"):
        return
    held = found.get("held", 0)
    if held:
        raise UsageError(
            f"Crawl {crawl.id} has no published records; {held:,} need a decision. List them with: curtsy review list"
        )
    raise UsageError(f"Crawl {crawl.id} has no records. Check its pages with: curtsy status {crawl.id}")
