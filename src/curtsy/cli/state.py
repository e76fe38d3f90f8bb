"""`status`, `pause`, `resume` and `cancel`: the state of a crawl."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from curtsy.cli import next_commands, show
from curtsy.cli.backends import SharedOptions
from curtsy.cli.options import WhichCrawl, Wide
from curtsy.client.backend import Backend, Document

#: fields that `status` shows with their use of a model
_FIELDS = 5
_GOES_ON = ("loading", "running", "interrupted", "paused", "extracting")


def status(
    shared: SharedOptions,
    crawl: WhichCrawl = "last",
    all_: Annotated[bool, typer.Option("--all", help="List the crawls, newest first.")] = False,
    search: Annotated[
        str | None,
        typer.Option("--search", metavar="TEXT", help="List crawls with this text in name, tag, id or hosts."),
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG", help="List crawls with this tag.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", metavar="KEY", help="List crawls of this API key.")] = None,
    schedule: Annotated[
        str | None, typer.Option("--schedule", metavar="NAME", help="List the runs of this schedule.")
    ] = None,
    wide: Wide = False,
) -> None:
    """Show the progress of a crawl, or list all crawls."""
    used = shared.backend()
    filters = {"q": search, "tag": tag, "owner": owner, "schedule": schedule}
    if not all_ and not any(filters.values()):
        _show(shared, used, used.crawl(crawl))
        return
    found = list(used.crawls(**filters))
    if shared.printed({"crawls": [show.ledger(one) for one in found]}):
        return
    columns = ["crawl", "name", "state", "lane", "pages", "pending", "dead letters", "created", "ended"]
    show.table(columns, map(_row, found), wide)


def _row(one: Document) -> list[Any]:
    """The API lists crawls without their counts; those cells stay empty."""
    counts = one.get("counts")
    letters = None if counts is None else sum(counts["failed"].values()) + sum(counts.get("failed_stages", {}).values())
    pending = None if counts is None else counts["pending"]
    name = show.one_line(" ".join([one.get("name") or "", *(f"#{tag}" for tag in one.get("tags", ()))]).strip(), 60)
    times = [one["created"], one["ended"]]
    return [one["id"], name or None, one["state"], one["lane"], one["pages"], pending, letters, *times]


def pause(shared: SharedOptions, crawl: WhichCrawl = "last") -> None:
    """Pause a crawl; requests in flight finish."""
    _change(shared, crawl, "pause")


def resume(shared: SharedOptions, crawl: WhichCrawl = "last") -> None:
    """Resume a paused crawl.

    If no process is crawling, run `curtsy crawl --resume` instead.
    """
    _change(shared, crawl, "resume")


def cancel(shared: SharedOptions, crawl: WhichCrawl = "last") -> None:
    """Cancel a crawl; fetched pages stay.

    Its open URLs count as skipped.
    """
    _change(shared, crawl, "cancel")


def _change(shared: SharedOptions, crawl: str, verb: str) -> None:
    used = shared.backend()
    _show(shared, used, used.change_crawl(crawl, verb))


def _show_model(used: dict[str, Any]) -> None:
    """Calls, tokens and cost of a language model, and the fields that cost most."""
    tokens = used["prompt_tokens"] + used["completion_tokens"]
    cost = f", cost {used['cost']:.4f}" if used["cost"] else ""
    show.say(f"model         {used['calls']:,} calls, {used['cached']:,} cached, {tokens:,} tokens{cost}")
    for one in used["fields"][:_FIELDS]:
        share = one["prompt_tokens"] + one["completion_tokens"]
        cost = f", cost {one['cost']:.4f}" if one["cost"] else ""
        show.say(f"  {one['schema']} {one['field']}: {one['calls']:,} calls, {share:,.0f} tokens{cost}")


def _show(shared: SharedOptions, used: Backend, found: dict[str, Any]) -> None:
    if shared.printed(show.ledger(found)):
        return
    counts = found["counts"]
    reason = f" ({found['reason']})" if found["reason"] else ""
    rate = f", {found['pages_per_s']:,.1f}/s" if found["pages_per_s"] else ""
    show.say(f"crawl         {found['id']}")
    if named := " ".join([found.get("name") or "", *(f"#{tag}" for tag in found.get("tags", ()))]).strip():
        show.say(f"name          {show.one_line(named, 200)}")
    if found.get("schedule"):
        show.say(f"schedule      {show.one_line(found['schedule'], 100)}")
    show.say(f"state         {found['state']}{reason}")
    show.say(f"pages         {counts['pages']:,}{rate}")
    show.say(f"done          {counts['done']:,}")
    show.say(f"pending       {show.pending(counts['pending'], counts.get('pending_render', 0))}")
    show.say(f"skipped       {show.reasons(counts['skipped'])}")
    show.say(f"dead letters  {show.reasons(counts['failed'] | counts.get('failed_stages', {}))}")
    if found.get("llm"):
        _show_model(found["llm"])
    if found["estimated_end"]:
        show.say(f"ends about    {found['estimated_end'][:19].rstrip('Z')}Z")
    if found["state"] in _GOES_ON and (command := used.how_to_resume(found["id"], next_commands.resume)):
        show.say(f"Resume with: {command}")
