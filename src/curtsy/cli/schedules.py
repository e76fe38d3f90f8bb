"""`schedules ...` and `changes`: crawls that are run again and again, and what changed between two."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from curtsy.cli import seeds, show
from curtsy.cli.commands import Commands
from curtsy.cli.crawl_options import (
    Delay,
    Exclude,
    From,
    Include,
    Lane,
    MaxDepth,
    MaxPages,
    Render,
    Scope,
    UrlsOfRuns,
    WebhookOfRuns,
    fields,
)
from curtsy.cli.options import (
    AsJson,
    Config,
    DataDir,
    ModelKind,
    RubricName,
    SchemaName,
    WhichCrawl,
    settings_from,
    stored,
)
from curtsy.cli.remote import Api, client
from curtsy.cli.show import when
from curtsy.client.http import word
from curtsy.control import changes as comparing
from curtsy.control import schedules as scheduling
from curtsy.control.schedules import shown
from curtsy.core.model import Run, Schedule
from curtsy.core.settings import Settings
from curtsy.store import schedules
from curtsy.store.engine import Store

app = Commands("Manage recurring crawls.")
Which = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Name or id of a schedule, or the beginning of its id.")]


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Yours to choose.")],
    cron: Annotated[str, typer.Argument(metavar="CRON", help="Five fields in quotes, or @hourly, @daily, ...")],
    urls: UrlsOfRuns = None,
    from_: From = None,
    zone: Annotated[str, typer.Option("--zone", metavar="NAME", help="Time zone of CRON: Europe/Berlin.")] = "UTC",
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="skip|queue", help="If the last run is still going when one is due.")
    ] = "skip",
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, metavar="N", help="Keep the crawls of the newest N runs only.")
    ] = None,
    lane: Lane = "batch",
    scope: Scope = "host",
    include: Include = None,
    exclude: Exclude = None,
    max_pages: MaxPages = None,
    max_depth: MaxDepth = None,
    delay: Delay = None,
    render: Render = "never",
    schema: SchemaName = None,
    rubric: RubricName = None,
    llm: ModelKind = None,
    webhook: WebhookOfRuns = None,
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a schedule; Beat fires it from then on."""
    crawl = fields(
        lane=lane, scope=scope, include=include or [], exclude=exclude or [], max_pages=max_pages, max_depth=max_depth,
        delay_s=delay, render=render, schema=schema, rubric=rubric, llm=llm, webhook=webhook,
    )  # fmt: skip
    given = {"name": name, "cron": cron, "zone": zone, "overlap": overlap, "keep": keep, "crawl": crawl}
    urls = list(seeds.read(urls or (), from_))
    if api:
        _show(client(api).post("/v1/schedules", given | {"seeds": urls}), as_json)
        return

    with _opened(config, data_dir) as (settings, store):
        made = scheduling.add(store, settings, seeds=urls, **given)  # type: ignore[arg-type]
    _show(_line(made), as_json)


@app.command("list")
def list_(api: Api = None, config: Config = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List schedules and when each is due."""
    found = list(client(api).items("/v1/schedules")) if api else list(map(_line, _all(config, data_dir)))
    if as_json:
        show.document({"schedules": found})
        return
    rows = [(one["name"], one["cron"], one["zone"], one["next"] or "paused", len(one["seeds"])) for one in found]
    show.table(["schedule", "cron", "zone", "next", "seeds"], rows)


@app.command()
def remove(
    schedule: Which, api: Api = None, config: Config = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Remove a schedule and the list of its runs; its crawls stay."""
    if api:
        found = client(api).get(f"/v1/schedules/{word(schedule)}")
        client(api).delete(f"/v1/schedules/{found['id']}")
    else:
        with stored(config, data_dir, looks=False) as (_settings, store):
            found = _line(scheduling.remove(store, schedule))
    _show(found, as_json, "is removed")


@app.command()
def pause(
    schedule: Which, api: Api = None, config: Config = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Fire a schedule no more until it is resumed; a crawl that is under way goes on."""
    _change(schedule, "pause", api, config, data_dir, as_json)


@app.command()
def resume(
    schedule: Which, api: Api = None, config: Config = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Let a paused schedule go on from now."""
    _change(schedule, "resume", api, config, data_dir, as_json)


@app.command()
def runs(
    schedule: Which,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, metavar="N", help="At most so many.")] = 100,
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the runs of a schedule, newest first."""
    if api:
        found = client(api).get(f"/v1/schedules/{word(schedule)}/runs", limit=limit)["items"]
    else:
        with stored(config, data_dir) as (_settings, store), store.read() as tx:
            found = [_run(run) for run in schedules.runs_of(tx, schedules.get(tx, schedule).n, limit=limit)]
    if as_json:
        show.document({"runs": found})
    else:
        names = ["planned", "state", "crawl", "note"]
        show.table(names, [[run[name] for name in names] for run in found])


def changes(
    crawl: WhichCrawl = "last",
    against: Annotated[
        str | None, typer.Option("--against", metavar="ID", help="The crawl to compare with; else the run before it.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help="List only new, changed, unchanged, gone, moved or unread pages."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, max=1000, metavar="N", help="List at most so many.")] = 100,
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed since an earlier crawl."""
    if api:
        query = {"against": against, "kind": kind, "limit": max(1, limit)}
        found = client(api).get(f"/v1/crawls/{word(crawl)}/changes", **query)
        del found["next"]
        found["items"] = found["items"][:limit]
    else:
        with stored(config, data_dir) as (_settings, store):
            found = _changes(store, crawl, against, kind, limit)
    if as_json:
        show.document(found)
        return
    show.say(f"crawl      {found['crawl']}")
    show.say(f"against    {found['against']}")
    for name, n in found["counts"].items():
        show.say(f"{name:<10} {n:,}")
    listed = [one for one in found["items"] if kind is not None or one["kind"] != "unchanged"]
    if listed:
        show.say()
        show.table(["kind", "url", "why"], [(one["kind"], one["url"], one["why"]) for one in listed])


def _changes(store: Store, crawl: str, against: str | None, kind: str | None, limit: int) -> dict[str, Any]:
    report = comparing.report_of(store, crawl, against)
    found, _ = comparing.chunk(store, report, kind, limit=limit) if limit else ([], None)
    items = [
        {
            "kind": one.kind, "url": one.url, "why": one.why or None, "sha256_before": one.sha256_before,
            "sha256": one.sha256, "before": when(one.before_ms), "at": when(one.at_ms),
        }
        for one in found
    ]  # fmt: skip
    counts = comparing.counts(store, report)
    return {"crawl": report.crawl.id, "against": report.against.id, "counts": counts, "items": items}


def _change(
    schedule: str, verb: str, api: str | None, config: Path | None, data_dir: Path | None, as_json: bool
) -> None:
    if api:
        found = client(api).post(f"/v1/schedules/{word(schedule)}/{verb}")
    else:
        with stored(config, data_dir, looks=False) as (_settings, store):
            change = scheduling.pause if verb == "pause" else scheduling.resume
            found = _line(change(store, schedule))
    _show(found, as_json)


@contextmanager
def _opened(config: Path | None, data_dir: Path | None) -> Iterator[tuple[Settings, Store]]:
    """The store, made if it is not there: a schedule may be the first thing in a folder."""
    settings = settings_from(config, data_dir)
    with Store.open(settings.effective_store_url) as store:
        yield settings, store


def _all(config: Path | None, data_dir: Path | None) -> list[Schedule]:
    with stored(config, data_dir) as (_settings, store), store.read() as tx:
        return schedules.list_all(tx, limit=100_000)


def _line(schedule: Schedule) -> dict[str, Any]:
    """The fields that the API gives."""
    next_ms = schedule.next_ms if schedule.enabled else None
    return shown(schedule) | {"next": when(next_ms), "created": when(schedule.created_ms)}


def _run(run: Run) -> dict[str, Any]:
    crawl = run.crawl_id if run.crawl is not None else None
    return {"planned": when(run.planned_ms), "state": run.state, "crawl": crawl, "note": run.note}


def _show(found: dict[str, Any], as_json: bool, said: str | None = None) -> None:
    if as_json:
        show.document(found)
    else:
        due = f"is due at {found['next']}" if found["next"] else "is paused"
        show.say(f"{found['name']} ({found['id']}) {said or due}")
