"""`external`: requests of external clients (Scrapy spiders) that are kept in the store."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from curtsy.cli import show
from curtsy.cli.commands import Commands
from curtsy.cli.options import AsJson, Config, DataDir, Wide, stored
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
def list_(config: Config = None, data_dir: DataDir = None, as_json: AsJson = False, wide: Wide = False) -> None:
    """List the runs of external clients, newest first."""
    with stored(config, data_dir) as (_, store), store.read() as tx:
        runs = [asdict(run) for run in external_requests.runs(tx)]
    for run in runs:
        run["started"], run["ended"] = timestamp(run.pop("started_ms")), timestamp(run.pop("ended_ms"))
    if as_json:
        show.document({"runs": runs})
        return
    columns = ["name", "state", "open", "held", "done", "failed", "started", "ended"]
    show.table(columns, [[run[column] for column in columns] for run in runs], wide)


@app.command()
def failures(
    name: Name = None,
    since: Since = None,
    limit: Limit = 100,
    wide: Wide = False,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the dead letters of external clients, oldest first."""
    with stored(config, data_dir) as (_, store), store.read() as tx:
        found = external_requests.failed(tx, name or "", since_ms(since, time.time()), limit)
    rows = [{**asdict(one), "at": timestamp(one.at_ms)} for one in found]
    if as_json:
        show.document({"failures": rows})
        return
    columns = ["at", "name", "cause", "url", "detail"]
    show.table(columns, [[row[column] for column in columns] for row in rows], wide)


@app.command()
def replay(
    name: Name = None,
    since: Since = None,
    limit: Limit = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them; change nothing.")] = False,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Mark dead letters as open; their spider fetches them again."""
    with stored(config, data_dir) as (_, store):
        with store.read() as tx:
            found = external_requests.failed(tx, name or "", since_ms(since, time.time()), limit)
        opened = len(found)
        if not dry_run:
            opened = store.run(external_requests.replay, [one.n for one in found], clock.now_ms())
    if as_json:
        show.document({"replayed": opened, "dry_run": dry_run})
    else:
        show.say(f"{opened:,} dead letters {'would be' if dry_run else 'are'} open again.")


@app.command()
def discard(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The run, as `external list` names it.")],
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """End an unfinished run and drop its requests."""
    with stored(config, data_dir) as (_, store):
        dropped = store.run(external_requests.discard, name, clock.now_ms())
    if dropped is None:
        raise UsageError(f"There is no unfinished run {name!r}. `curtsy external list` lists the runs.")
    if as_json:
        show.document({"name": name, "discarded": dropped})
    else:
        show.say(f"{dropped:,} open requests of {name} were dropped.")
