"""`records`: what was made of a crawl's pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer

from curtsy.cli import show
from curtsy.cli.options import AsJson, Config, DataDir, WhichCrawl, stored
from curtsy.cli.remote import Api, client
from curtsy.cli.show import when
from curtsy.client.http import word
from curtsy.core.errors import UsageError
from curtsy.core.record import Record
from curtsy.records import serialize
from curtsy.records.serialize import STATUSES, line
from curtsy.store.engine import Store


def records(
    crawl: WhichCrawl = "last",
    low_confidence: Annotated[
        bool | None,
        typer.Option("--low-confidence/--no-low-confidence", help="Only doubtful ones, or only the others."),
    ] = None,
    held: Annotated[bool, typer.Option("--held", help="Those that wait for a person, instead of the others.")] = False,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", metavar="STATUS", help="published, held, rejected or superseded.", show_default="published"
        ),
    ] = None,
    every_schema: Annotated[
        bool, typer.Option("--every-schema", help="Also records of schemas that the crawl had before.")
    ] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most so many.")] = None,
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Print the records of a crawl as JSON lines."""
    wanted = _status(status, held)

    def write(found: Iterator[dict[str, Any]]) -> None:
        shown = islice(found, limit)
        if as_json:
            show.document({"records": list(shown)})
            return
        for record in shown:
            show.say(json.dumps(record, ensure_ascii=False))

    if api:
        asked = {"low_confidence": None if low_confidence is None else str(low_confidence).lower(), "status": wanted}
        asked["every_schema"] = "true" if every_schema else None
        write(client(api).items(f"/v1/crawls/{word(crawl)}/records", **asked))
    else:
        with stored(config, data_dir) as (_settings, store):
            write(_lines(store, crawl, low_confidence, wanted, every_schema))


def _status(status: str | None, held: bool) -> str:
    if held and status not in (None, "held"):
        raise UsageError("--held is --status held: give one of them.")
    if status is not None and status not in STATUSES:
        raise UsageError(f"There is no status {status!r}. Use one of: {', '.join(STATUSES)}.")
    return "held" if held else status or "published"


def _lines(
    store: Store, crawl: str, low_confidence: bool | None, status: str, every_schema: bool
) -> Iterator[dict[str, Any]]:
    found = serialize.of_crawl(
        store, crawl, statuses=(status,), low_confidence=low_confidence, every_schema=every_schema
    )
    yield from map(shown_of, found)


def shown_of(record: Record) -> dict[str, Any]:
    """The fields that the API gives."""
    return line(record) | {"created": when(record.created_ms)}
