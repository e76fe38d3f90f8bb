"""`status`, `pause`, `resume` and `cancel`: what a crawl is doing, and whether it should."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from curtsy.cli import next_commands, remote, show
from curtsy.cli.options import AsJson, Config, DataDir, WhichCrawl, stored
from curtsy.cli.remote import Api
from curtsy.control import crawls as control
from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.core.model import Counts, Crawl, CrawlState
from curtsy.store import crawls
from curtsy.store.engine import Store

#: command -> the state it gives a crawl
_STATES = {"pause": "paused", "resume": "running", "cancel": "cancelled"}


def status(
    crawl: WhichCrawl = "last",
    all_: Annotated[bool, typer.Option("--all", help="List the crawls, newest first.")] = False,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    api: Api = None,
) -> None:
    """Show the progress of a crawl, or list all crawls."""
    if api:
        remote.status(api, crawl, all_, as_json)
        return

    with stored(config, data_dir) as (_settings, store):
        with store.read() as tx:
            chosen = crawls.list_all(tx) if all_ else [crawls.get(tx, crawl)]
            found = [(one, crawls.counts(tx, one.n)) for one in chosen]
        if not all_ and not as_json:
            _describe(*found[0], store)
            return
    documents = [_ledger(one, counts) for one, counts in found]
    if as_json:
        show.document({"crawls": documents} if all_ else documents[0])
    else:
        rows = [(d["id"], d["state"], d["pages"], d["pending"], _dead(d), d["elapsed_s"]) for d in documents]
        show.table(["crawl", "state", "pages", "pending", "dead letters", "seconds"], rows)


def pause(
    crawl: WhichCrawl = "last",
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    api: Api = None,
) -> None:
    """Pause a crawl; requests in flight finish."""
    _change(crawl, "pause", config, data_dir, as_json, api)


def resume(
    crawl: WhichCrawl = "last",
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    api: Api = None,
) -> None:
    """Let a paused crawl continue.

    `curtsy crawl --resume` does the work if no process is crawling.
    """
    _change(crawl, "resume", config, data_dir, as_json, api)


def cancel(
    crawl: WhichCrawl = "last",
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    api: Api = None,
) -> None:
    """Cancel a crawl; fetched pages stay.

    Its open URLs count as skipped.
    """
    _change(crawl, "cancel", config, data_dir, as_json, api)


def _change(which: str, verb: str, config: Path | None, data_dir: Path | None, as_json: bool, api: str | None) -> None:
    if api:
        remote.change(api, which, verb, as_json)
        return
    state = CrawlState(_STATES[verb])
    reason = "cancelled" if state is CrawlState.CANCELLED else None
    with stored(config, data_dir, looks=False) as (_settings, store):
        with store.read() as tx:
            crawl = crawls.get(tx, which)
        changed = store.run(crawls.set_state, crawl.n, state, reason, clock.now_ms(), only_from=control.CHANGES[state])
        with store.read() as tx:
            crawl, counts = crawls.by_n(tx, crawl.n), crawls.counts(tx, crawl.n)
        if not changed and crawl.state is not state:
            raise UsageError(control.cannot(crawl, state))
        if as_json:
            show.document(_ledger(crawl, counts))
        else:
            _describe(crawl, counts, store)


def _ledger(crawl: Crawl, counts: Counts) -> dict[str, Any]:
    return show.ledger(crawl, counts, show.elapsed_s(crawl, clock.now_ms()))


def _dead(ledger: dict[str, Any]) -> int:
    return sum([*ledger["failed"].values(), *ledger["failed_stages"].values()])


def _describe(crawl: Crawl, counts: Counts, store: Store) -> None:
    show.say(f"crawl         {crawl.id}")
    show.say(f"state         {crawl.state}{f' ({crawl.reason})' if crawl.reason else ''}")
    show.say(f"pages         {counts.pages:,}")
    show.say(f"done          {counts.done:,}")
    show.say(f"pending       {show.pending(counts.pending, counts.pending_render)}")
    show.say(f"skipped       {show.reasons(counts.skipped)}")
    show.say(f"dead letters  {show.reasons(counts.failed | counts.failed_stages)}")
    if crawl.state in (CrawlState.RUNNING, CrawlState.PAUSED, CrawlState.LOADING, CrawlState.EXTRACTING):
        show.say(f"Go on with: {next_commands.go_on(store, crawl)}")
