"""`delete`: removes crawls or pages, with their bodies."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from curtsy.cli import show
from curtsy.cli.backends import SharedOptions
from curtsy.cli.options import OfCrawl
from curtsy.client.backend import Document
from curtsy.control.retention import url_named
from curtsy.core.errors import UsageError

_NO_ANSWER = "Nothing was deleted: there was no answer. Use --yes to delete without a question."


def delete(
    shared: SharedOptions,
    crawl: OfCrawl = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="Pages of this URL.")] = None,
    host: Annotated[str | None, typer.Option("--host", metavar="HOST", help="Pages of this host.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a crawl, or the pages of a URL or host.

    Their bodies and records are deleted too. Pages are deleted in all crawls unless --crawl names one.
    """
    if (crawl is None and url is None and host is None) or (url is not None and host is not None):
        raise UsageError("Say what to delete: --crawl ID, --url URL or --host HOST.")
    if "" in (crawl, url, host):
        raise UsageError("--crawl, --url or --host is empty: give it a value, or remove it.")
    if url is not None or host is not None:
        url_named(url, host)
    used = shared.backend()
    # By its id from here on: `last` may be another crawl when the answer is given.
    found = None if crawl is None else used.crawl(crawl)
    id = None if found is None else str(found["id"])
    what = f"all pages of {url or host}{f' in crawl {id}' if id else ''}" if url or host else f"crawl {id}"
    about = "" if found is None or url or host else f" ({_about(found)})"
    if not yes:
        _confirm(f"Delete {what}{about} permanently?")
    if not shared.as_json:
        show.note(f"Deleting {what} ...")
    done = used.delete(id, url, host)
    if shared.printed(done):
        return
    state = "deleted" if done["done"] else "being deleted; a process that runs completes it"
    show.say(f"{what[0].upper()}{what[1:]}: {state}.")


def _confirm(question: str) -> None:
    if sys.stdin is None:
        raise UsageError(_NO_ANSWER)
    try:
        agreed = typer.confirm(question)
    except typer.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        raise UsageError(_NO_ANSWER) from None
    if not agreed:
        raise UsageError("Nothing was deleted.")


def _about(found: Document) -> str:
    """`finished, 120 pages, created 2026-01-31T12:00:00Z, https://a.test/ and 4 more seeds`."""
    seeds = found.get("seeds") or []
    more = (found.get("seed_count") or len(seeds)) - 1
    named = f", {seeds[0]}" + (f" and {show.number(more, 'more seed')}" if more > 0 else "") if seeds else ""
    return f"{found['state']}, {show.number(found['counts']['pages'], 'page')}, created {found['created']}{named}"
