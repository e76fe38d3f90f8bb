"""`records`: what was extracted from a crawl's pages."""

from __future__ import annotations

import json
from itertools import islice
from typing import Annotated

import typer

from curtsy.cli import show
from curtsy.cli.backends import SharedOptions
from curtsy.cli.options import WhichCrawl
from curtsy.core.errors import UsageError
from curtsy.records.serialize import STATUSES


def records(
    shared: SharedOptions,
    crawl: WhichCrawl = "last",
    low_confidence: Annotated[
        bool | None,
        typer.Option("--low-confidence/--no-low-confidence", help="Only doubtful records, or only the others."),
    ] = None,
    held: Annotated[bool, typer.Option("--held", help="The same as --status held.")] = False,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", metavar="STATUS", help="published, held, rejected or superseded.", show_default="published"
        ),
    ] = None,
    every_schema: Annotated[bool, typer.Option("--every-schema", help="Also records of earlier schemas.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most N.")] = None,
) -> None:
    """Print the records of a crawl as JSON lines."""
    wanted = _status(status, held)
    found = islice(shared.backend().records(crawl, wanted, low_confidence, every_schema), limit)
    if shared.as_json:
        show.document({"records": list(found)})
        return
    for record in found:
        show.say(json.dumps(record, ensure_ascii=False))


def _status(status: str | None, held: bool) -> str:
    if held and status not in (None, "held"):
        raise UsageError("--held is the same as --status held: use one of them.")
    if status is not None and status not in STATUSES:
        raise UsageError(f"There is no status {status!r}. Use one of: {', '.join(STATUSES)}.")
    return "held" if held else status or "published"
