"""`external`: requests of external clients (Scrapy spiders) that are kept in the store."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from curtsy.cli import show
from curtsy.cli.commands import Commands
from curtsy.cli.options import LocalOptions, Wide
from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.core.times import since_ms, timestamp
from curtsy.store import external_requests

app = Commands("List, replay and discard requests of Scrapy spiders.")
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Only of this run: CURTSY_RUN or the name of the spider.")
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Only since then: 30m, 12h or 7d ago, or 2026-01-31."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1_000_000, metavar="N", help="At most N.")]


@app.command("list")
def list_(shared: LocalOptions, wide: Wide = False) -> None:
    """List the runs of external clients, newest first."""
    with shared.stored() as (_, store), store.read() as tx:
        runs = [asdict(run) for run in external_requests.runs(tx)]
    for run in runs:
        run["started"], run["ended"] = timestamp(run.pop("started_ms")), timestamp(run.pop("ended_ms"))
    if shared.printed({"runs": runs}):
        return
    columns = ["name", "state", "open", "held", "done", "failed", "started", "ended"]
    show.table(columns, [[run[column] for column in columns] for run in runs], wide)


@app.command()
def failures(
    shared: LocalOptions,
    name: Name = None,
    since: Since = None,
    limit: Limit = 100,
    wide: Wide = False,
) -> None:
    """List the dead letters of external clients, oldest first."""
    with shared.stored() as (_, store), store.read() as tx:
        found = external_requests.failed(tx, name or "", since_ms(since, time.time()), limit)
    rows = [{**asdict(one), "at": timestamp(one.at_ms)} for one in found]
    if shared.printed({"failures": rows}):
        return
    columns = ["at", "name", "cause", "url", "detail"]
    show.table(columns, [[row[column] for column in columns] for row in rows], wide)


@app.command()
def replay(
    shared: LocalOptions,
    name: Name = None,
    since: Since = None,
    limit: Limit = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them; change nothing.")] = False,
) -> None:
    """Mark dead letters as open; their spider fetches them again."""
    with shared.stored() as (_, store):
        with store.read() as tx:
            found = external_requests.failed(tx, name or "", since_ms(since, time.time()), limit)
        opened = len(found)
        if not dry_run:
            opened = store.run(external_requests.replay, [one.n for one in found], clock.now_ms())
    if not shared.printed({"replayed": opened, "dry_run": dry_run}):
        show.say(f"{opened:,} dead letters {'would be' if dry_run else 'are'} open again.")


@app.command()
def discard(
    shared: LocalOptions,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The run, as `external list` names it.")],
) -> None:
    """End an unfinished run and drop its requests."""
    with shared.stored() as (_, store):
        dropped = store.run(external_requests.discard, name, clock.now_ms())
    if dropped is None:
        raise UsageError(f"There is no unfinished run {name!r}. `curtsy external list` lists the runs.")
    if not shared.printed({"name": name, "discarded": dropped}):
        show.say(f"{dropped:,} open requests of {name} were dropped.")
