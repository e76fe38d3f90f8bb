"""`schedules ...` and `changes`: recurring crawls, and what changed between two crawls."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from curtsy.cli import next_commands, seeds, show
from curtsy.cli.backends import SharedOptions
from curtsy.cli.commands import Commands
from curtsy.cli.crawl_options import From, Urls, project_of, request_of, with_crawl_options
from curtsy.cli.options import WhichCrawl, Wide
from curtsy.core.errors import UsageError

app = Commands("Manage recurring crawls.")
#: runs that `show` lists
_SHOWN_RUNS = 10
Which = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Name or id of a schedule, or the beginning of its id.")]


@app.command("list")
def list_(shared: SharedOptions, wide: Wide = False) -> None:
    """List schedules with their next runs."""
    found = shared.backend().schedules()
    if shared.printed({"schedules": found}):
        return
    rows = [(one["name"], one["cron"], one["zone"], one["next"] or "paused", len(one["seeds"])) for one in found]
    show.table(["schedule", "cron", "zone", "next", "seeds"], rows, wide)


@app.command()
@with_crawl_options
def add(
    options: dict[str, Any],
    shared: SharedOptions,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of your choice.")],
    cron: Annotated[str, typer.Argument(metavar="CRON", help="Five fields in quotes, or @hourly, @daily, ...")],
    urls: Urls = None,
    from_: From = None,
    zone: Annotated[str, typer.Option("--zone", metavar="NAME", help="Time zone of CRON.")] = "UTC",
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="skip|queue", help="What to do if the previous run is still active.")
    ] = "skip",
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, metavar="N", help="Keep the crawls of the newest N runs only.")
    ] = None,
) -> None:
    """Create a schedule; Beat runs it from then on.

    In a project folder, it has the seeds and options of the project.
    """
    if not shared.api:
        project = project_of(shared.config)
        options = {name: value for name, value in project.options.items() if name != "name"} | options
        from_ = project.seeds if not urls and from_ is None else from_
    request_of(options)
    made = shared.backend().add_schedule(
        list(seeds.read(urls or (), from_)), name=name, cron=cron, zone=zone, overlap=overlap, keep=keep, crawl=options
    )
    _show(shared, made)
    if not shared.api and not shared.as_json:
        up = next_commands.command("up")
        show.note(f"It runs only while Beat and a worker run. Start them on this machine with: {up}")


@app.command()
def remove(shared: SharedOptions, schedule: Which) -> None:
    """Remove a schedule and the list of its runs; its crawls stay."""
    _show(shared, shared.backend().change_schedule(schedule, "remove"), "is removed")


@app.command()
def pause(shared: SharedOptions, schedule: Which) -> None:
    """Pause a schedule; its running crawl continues."""
    _show(shared, shared.backend().change_schedule(schedule, "pause"))


@app.command()
def resume(shared: SharedOptions, schedule: Which) -> None:
    """Resume a paused schedule; missed runs are not repeated."""
    _show(shared, shared.backend().change_schedule(schedule, "resume"))


@app.command()
def runs(
    shared: SharedOptions,
    schedule: Which,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, metavar="N", help="At most N.")] = 100,
    wide: Wide = False,
) -> None:
    """List the runs of a schedule, newest first."""
    found = shared.backend().schedule_runs(schedule, limit)
    if not shared.printed({"runs": found}):
        _table(found, wide)


def _table(found: list[dict[str, Any]], wide: bool) -> None:
    names = ["planned", "state", "crawl", "outcome", "pages", "dead_letters", "ended", "note"]
    show.table([name.replace("_", " ") for name in names], [[run[name] for name in names] for run in found], wide)


@app.command("show")
def show_(shared: SharedOptions, schedule: Which, wide: Wide = False) -> None:
    """Show a schedule, its options and its last runs."""
    used = shared.backend()
    found = used.schedule(schedule)
    last = used.schedule_runs(found["id"], _SHOWN_RUNS)
    if shared.printed(found | {"runs": last}):
        return
    _say_due(found)
    show.say(f"cron          {found['cron']} ({found['zone']})")
    show.say(f"overlap       {found['overlap']}")
    show.say(f"keeps         {'all crawls' if found['keep'] is None else show.number(found['keep'], 'crawl')}")
    show.say(f"seeds         {show.number(len(found['seeds']), 'URL')}, such as {found['seeds'][0]}")
    for name, value in found["crawl"].items():
        if value not in (None, [], False):
            show.say(f"{name:<13} {show.one_line(str(value), 200)}")
    if last:
        _table(last, wide)


@app.command()
def run(shared: SharedOptions, schedule: Which) -> None:
    """Run a schedule now, in addition to its planned times."""
    found = shared.backend().run_schedule(schedule)
    if shared.printed(found):
        return
    show.say(f"A run is {found['state']}. Beat starts it.")
    if not shared.api:
        show.note(f"It starts while Beat and a worker run: {next_commands.command('up')}")


@app.command()
@partial(with_crawl_options, defaults=False)
def edit(
    options: dict[str, Any],
    shared: SharedOptions,
    schedule: Which,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="A new name of the schedule.")] = None,
    cron: Annotated[str | None, typer.Option("--cron", metavar="CRON", help="New times.")] = None,
    zone: Annotated[str | None, typer.Option("--zone", metavar="ZONE", help="New time zone of CRON.")] = None,
    from_: From = None,
    overlap: Annotated[
        str | None, typer.Option("--overlap", metavar="skip|queue", help="What to do if the previous run is active.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", min=0, metavar="N", help="Keep the crawls of N runs; 0 keeps all.")
    ] = None,
) -> None:
    """Change a schedule from its next run on; what you omit stays."""
    request_of(options)
    given = {"name": name, "cron": cron, "zone": zone, "overlap": overlap, "crawl": options or None}
    changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    if from_ is not None:
        changes["seeds"] = list(seeds.read((), from_))
    if keep is not None:
        changes["keep"] = keep or None
    if not changes:
        raise UsageError("Nothing to change. Give an option, such as --cron '0 6 * * *'.")
    _show(shared, shared.backend().edit_schedule(schedule, changes))


def changes(
    shared: SharedOptions,
    crawl: WhichCrawl = "last",
    against: Annotated[
        str | None, typer.Option("--against", metavar="ID", help="Compare with this crawl, not with the previous one.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help="List only new, changed, unchanged, gone, moved or unread pages."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, max=1000, metavar="N", help="List at most N pages.")] = 100,
    wide: Wide = False,
) -> None:
    """Show what changed since an earlier crawl."""
    found = shared.backend().changes(crawl, against, kind, limit)
    if shared.printed(found):
        return
    show.say(f"crawl      {found['crawl']}")
    show.say(f"against    {found['against']}")
    for name, n in found["counts"].items():
        show.say(f"{name:<10} {n:,}")
    listed = [one for one in found["items"] if kind is not None or one["kind"] != "unchanged"]
    values = found.get("values")  # not over the API
    if values is not None:
        show.say(f"values     {len(values):,}")
    if listed:
        show.say()
        show.table(["kind", "url", "why"], [(one["kind"], one["url"], one["why"]) for one in listed], wide)
    for one in listed:
        if one.get("text"):
            show.say(f"\n{one['url']}")
            for line in one["text"]:
                show.say(f"  {show.one_line(line, 200)}")
    if values:
        show.say()
        names = ("url", "field", "before", "now")
        show.table(names, [[show.one_line(str(one[name]), 60) for name in names] for one in values[:limit]], wide)
    pages = sum(n for name, n in found["counts"].items() if name == kind or (kind is None and name != "unchanged"))
    _say_cut(pages, limit, "page")
    _say_cut(len(values or ()), limit, "value")


def _say_cut(n: int, limit: int, what: str) -> None:
    if n > limit:
        are = "is" if limit == 1 else "are"
        show.note(f"Only {limit:,} of {show.number(n, what)} {are} listed; --limit N lists more.")


def _show(shared: SharedOptions, found: dict[str, Any], removed: str | None = None) -> None:
    if not shared.printed(found):
        _say_due(found, removed)


def _say_due(found: dict[str, Any], removed: str | None = None) -> None:
    due = f"is due at {found['next']}" if found["next"] else "is paused"
    show.say(f"{found['name']} ({found['id']}) {removed or due}")
