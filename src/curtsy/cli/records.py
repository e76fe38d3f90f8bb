"""`records`: what was made of a crawl's pages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curtsy.cli.options import AsJson, Config, DataDir, WhichCrawl, stored
from curtsy.cli.remote import Api

if TYPE_CHECKING:
    from curtsy.model import Record
    from curtsy.store.engine import Store


def register(app: typer.Typer) -> None:
    app.command()(records)


def records(
    crawl: WhichCrawl = "last",
    low_confidence: Annotated[
        bool | None,
        typer.Option("--low-confidence/--no-low-confidence", help="Only doubtful ones, or only the others."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most so many.")] = None,
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write the records of a crawl that names a schema, one JSON object per line."""
    import json

    from curtsy.cli import show

    def write(found: Iterator[dict[str, Any]]) -> None:
        wanted = islice(found, limit)
        if as_json:
            show.document({"records": list(wanted)})
            return
        for record in wanted:
            show.say(json.dumps(record, ensure_ascii=False))

    if api:
        from urllib.parse import quote

        from curtsy.cli.remote import client

        given = None if low_confidence is None else str(low_confidence).lower()
        write(client(api).items(f"/v1/crawls/{quote(crawl, safe='')}/records", low_confidence=given))
    else:
        with stored(config, data_dir) as (_settings, store):
            write(_all(store, crawl, low_confidence))


def _all(store: Store, which: str, low_confidence: bool | None) -> Iterator[dict[str, Any]]:
    """In short transactions: reading never holds up a crawl."""
    from curtsy.store import crawls, records

    with store.read() as tx:
        n = crawls.get(tx, which).n
    after = 0
    while True:
        with store.read() as tx:
            found, after = records.chunk(tx, n, after, low_confidence=low_confidence)
        if not found:
            return
        yield from map(_line, found)


def _line(record: Record) -> dict[str, Any]:
    """The fields that the API gives."""
    from curtsy.cli.show import when
    from curtsy.store.pages import page_id

    names = ("url", "schema", "schema_hash", "ordinal", "data", "scores", "low_confidence", "request_id")
    fields = {name: getattr(record, name) for name in names}
    page = page_id(record.crawl, bytes.fromhex(record.subject))
    return {"id": str(record.n), "page": page, **fields, "created": when(record.created_ms)}
