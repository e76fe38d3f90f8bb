"""`failures list` and `failures replay`: dead letters, and giving them another chance."""

from __future__ import annotations

import time
from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any, NamedTuple

import typer

from curtsy.cli import frontier_access, next_commands, remote, show
from curtsy.cli.commands import Commands
from curtsy.cli.options import AsJson, Config, DataDir, OfCrawl, host_of, number_of, stored
from curtsy.cli.remote import Api
from curtsy.control import replay as pipeline
from curtsy.control.replay import Filter
from curtsy.core import clock
from curtsy.core.times import since_ms
from curtsy.store import crawls
from curtsy.store.engine import Store

app = Commands("List dead letters, or replay them.")
Host = Annotated[str | None, typer.Option("--host", metavar="HOST", help="Only of this host; a URL of it will do.")]
Stage = Annotated[
    str | None,
    typer.Option("--stage", metavar="STAGE", help="Only of this stage: fetch, extract, score, store or webhook."),
]
Cause = Annotated[str | None, typer.Option("--cause", metavar="WORD", help="Only with this cause, such as timeout.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Only since then: 30m, 12h, 7d ago, or 2026-01-31[T12:00]."),
]

#: dead letters that one request to the API may name
_AT_ONCE = 100_000


@app.command("list")
def list_(
    crawl: OfCrawl = None,
    host: Host = None,
    stage: Stage = None,
    cause: Cause = None,
    since: Since = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10**9, help="At most so many.")] = 1000,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    api: Api = None,
) -> None:
    """List dead letters, oldest first."""
    if api:
        _list_remote(api, _asked(crawl, host, stage, cause, since), limit, as_json)
        return

    with stored(config, data_dir) as (settings, store):
        host = host_of(settings, store, host)
        found = pipeline.find(store, _filter(store, crawl, host, stage, cause, since, limit))
    if as_json:
        fields = ("id", "url", "host", "stage", "cause", "detail", "status", "attempts")
        rows = [{name: getattr(f, name) for name in fields} | {"at": show.when(f.at_ms)} for f in found]
        show.document({"failures": rows})
    else:
        _show([_Letter(f.cause, f.status, f.attempts, show.when(f.at_ms), f.url, f.stage, f.detail) for f in found])


@app.command()
def replay(
    crawl: OfCrawl = None,
    host: Host = None,
    stage: Stage = None,
    cause: Cause = None,
    since: Since = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, max=10**9, help="At most so many.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be replayed; change nothing.")] = False,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    api: Api = None,
) -> None:
    """Open dead letters again; `curtsy crawl --resume` then fetches them."""
    if api:
        _replay_remote(api, _asked(crawl, host, stage, cause, since), limit, dry_run, as_json)
        return
    with stored(config, data_dir, looks=dry_run) as (settings, store):
        host = host_of(settings, store, host)
        which = _filter(store, crawl, host, stage, cause, since, limit)
        done = pipeline.replay(store, which, clock.now_ms(), dry_run=dry_run)
        with store.read() as tx:
            opened = [crawls.get(tx, id) for id in (() if dry_run else done.crawls)]
        ways = [next_commands.go_on(store, one) for one in opened]
    if done.queues and frontier_access.is_there(settings):
        frontier_access.with_services(settings, lambda built: pipeline.put_back_replayed(built, done))
    if as_json:
        told = asdict(done)
        del told["queues"]
        show.document(told | {"dry_run": dry_run})
        return
    show.say(f"{done.dead_letters:,} dead letters {'would be' if dry_run else 'are'} open again.")
    if done.of_cancelled_crawls:
        show.say(f"{done.of_cancelled_crawls:,} belong to cancelled crawls and were left alone.")
    for way in ways:
        show.say(f"Go on with: {way}")


class _Letter(NamedTuple):
    """What the table of dead letters has."""

    cause: str
    status: int | None
    attempts: int
    at: str | None
    url: str
    stage: str
    detail: str | None


def _show(found: list[_Letter]) -> None:
    """Most are of the stage `fetch`, which is left out."""
    cells = [
        one._replace(
            status=one.status or None, stage="" if one.stage == "fetch" else one.stage, detail=show.one_line(one.detail)
        )
        for one in found
    ]
    show.table(_Letter._fields, cells)


def _filter(
    store: Store,
    crawl: str | None,
    host: str | None,
    stage: str | None,
    cause: str | None,
    since: str | None,
    limit: int | None,
) -> Filter:
    n, begin_ms = number_of(store, crawl), since_ms(since, time.time())
    return Filter(crawl=n, host=host, stage=stage, cause=cause, since_ms=begin_ms, limit=limit)


# Over the API


def _asked(
    crawl: str | None, host: str | None, stage: str | None, cause: str | None, since: str | None
) -> dict[str, str]:
    given = {"crawl": crawl, "host": host, "stage": stage, "cause": cause, "since": since}
    return {name: value for name, value in given.items() if value is not None}


def _list_remote(api: str, asked: dict[str, str], limit: int, as_json: bool) -> None:
    found = list(islice(remote.client(api).items("/v1/failures", **asked, limit=min(limit, 1000)), limit))
    if as_json:
        show.document({"failures": found})
    else:
        _show([_Letter(**{name: f[name] for name in _Letter._fields}) for f in found])


def _replay_remote(api: str, asked: dict[str, str], limit: int | None, dry_run: bool, as_json: bool) -> None:
    """So many at a time as the API takes in one request."""
    client = remote.client(api)
    done: dict[str, Any] = {"dead_letters": 0, "crawls": [], "of_cancelled_crawls": 0, "dry_run": dry_run}
    left = limit if limit is not None else 10**9
    while left > 0:
        some = min(left, _AT_ONCE)
        told = client.post("/v1/failures/replay", {**asked, "limit": some, "dry_run": dry_run})
        done["dead_letters"] += told["dead_letters"]
        done["of_cancelled_crawls"] = told["of_cancelled_crawls"]
        done["crawls"] = sorted({*done["crawls"], *told["crawls"]})
        left -= some
        if dry_run or told["dead_letters"] < some:
            break
    if as_json:
        show.document(done)
        return
    show.say(f"{done['dead_letters']:,} dead letters {'would be' if dry_run else 'are'} open again.")
    if done["of_cancelled_crawls"]:
        show.say(f"{done['of_cancelled_crawls']:,} belong to cancelled crawls and were left alone.")
