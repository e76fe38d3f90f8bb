"""`failures list` and `failures replay`: list dead letters, and retry them."""

from __future__ import annotations

from typing import Annotated

import typer

from curtsy.cli import next_commands, show
from curtsy.cli.backends import SharedOptions
from curtsy.cli.commands import Commands
from curtsy.cli.options import OfCrawl, Wide

app = Commands("List dead letters, or replay them.")
Host = Annotated[str | None, typer.Option("--host", metavar="HOST", help="Only this host, or the host of this URL.")]
Stage = Annotated[
    str | None,
    typer.Option("--stage", metavar="STAGE", help="Only of this stage: fetch, extract, score, store or webhook."),
]
Cause = Annotated[str | None, typer.Option("--cause", metavar="CAUSE", help="Only with this cause, such as timeout.")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only since then: 30m, 12h or 7d ago, or 2026-01-31.")
]
_COLUMNS = ("cause", "status", "attempts", "at", "url", "stage", "detail")


@app.command("list")
def list_(
    shared: SharedOptions,
    crawl: OfCrawl = None,
    host: Host = None,
    stage: Stage = None,
    cause: Cause = None,
    since: Since = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10**9, metavar="N", help="At most N.")] = 1000,
    wide: Wide = False,
) -> None:
    """List dead letters, oldest first."""
    found = shared.backend().failures(_filters(crawl, host, stage, cause, since), limit)
    if shared.printed({"failures": found}):
        return
    for one in found:
        # Most are of the stage `fetch`, which is left out.
        stage_shown = "" if one["stage"] == "fetch" else one["stage"]
        # The URL names the host already: the room is for the reason.
        detail = (one["detail"] or "").removeprefix(f"its host {one['host']} does not answer: ")
        one |= {"status": one["status"] or None, "stage": stage_shown, "detail": show.one_line(detail)}
    show.table(_COLUMNS, [[one[column] for column in _COLUMNS] for one in found], wide)


@app.command()
def replay(
    shared: SharedOptions,
    crawl: OfCrawl = None,
    host: Host = None,
    stage: Stage = None,
    cause: Cause = None,
    since: Since = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, max=10**9, metavar="N", help="At most N.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them; change nothing.")] = False,
) -> None:
    """Mark dead letters as open, so that they are retried.

    Workers, or `curtsy crawl --resume`, then process them.
    """
    used = shared.backend()
    done = used.replay(_filters(crawl, host, stage, cause, since), limit, dry_run)
    if shared.printed(done):
        return
    show.say(f"{done['dead_letters']:,} dead letters {'would be' if dry_run else 'are'} open again.")
    if done["of_cancelled_crawls"]:
        show.say(f"{done['of_cancelled_crawls']:,} belong to canceled crawls and were not opened.")
    for id in () if dry_run else done["crawls"]:
        if command := used.how_to_resume(id, next_commands.resume):
            show.say(f"Resume with: {command}")


def _filters(
    crawl: str | None, host: str | None, stage: str | None, cause: str | None, since: str | None
) -> dict[str, str]:
    given = {"crawl": crawl, "host": host, "stage": stage, "cause": cause, "since": since}
    return {name: value for name, value in given.items() if value is not None}
