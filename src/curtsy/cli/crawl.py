"""`crawl`: from URLs to committed pages; `demo`: the same over the tiny web."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curtsy.cli import next_commands, progress, seeds, show
from curtsy.cli.crawl_options import (
    Exclude,
    From,
    GivenCookies,
    GivenDelay,
    GivenDepth,
    GivenLane,
    GivenPages,
    GivenPerHost,
    GivenRender,
    GivenScope,
    GivenSitemaps,
    Include,
    Urls,
    fields,
    possible,
)
from curtsy.cli.options import AsJson, Config, DataDir, ModelKind, RubricName, SchemaName, settings_from
from curtsy.cli.run_crawl import Ended, drive
from curtsy.control.explain_text import MEANINGS
from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, Lane, new_id
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import keep, load, missing
from curtsy.export import pages
from curtsy.export.targets import Target, target_of
from curtsy.records import plan
from curtsy.store import crawls
from curtsy.store.engine import Store

Out = Annotated[
    str | None,
    typer.Option(
        "--out", metavar="PATH", help="Export when it has finished: .jsonl, .csv, .parquet, .warc.gz or a folder."
    ),
]
Resolve = Annotated[
    list[str] | None,
    typer.Option(
        "--resolve",
        metavar="PATTERN=ADDR:PORT",
        help="Where names go instead of DNS: '*.example.test=127.0.0.1:80'.",
    ),
]
AllowPrivate = Annotated[
    list[str] | None, typer.Option("--allow-private", metavar="CIDR", help="Private addresses that may be asked.")
]
Proxy = Annotated[
    list[str] | None, typer.Option("--proxy", metavar="URL", help="Send requests through one of these proxies.")
]

#: what may be another when a crawl is resumed; the rest decided which URLs it has
CHANGEABLE = {"delay_s", "per_host", "max_pages"}


def crawl(
    urls: Urls = None,
    from_: From = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="ID", help="Go on with a crawl: its id, its beginning, or `last`.")
    ] = None,
    scope: GivenScope = None,
    include: Include = None,
    exclude: Exclude = None,
    max_pages: GivenPages = None,
    max_depth: GivenDepth = None,
    delay: GivenDelay = None,
    per_host: GivenPerHost = None,
    lane: GivenLane = None,
    render: GivenRender = None,
    sitemaps: GivenSitemaps = None,
    cookies: GivenCookies = None,
    schema: SchemaName = None,
    rubric: RubricName = None,
    llm: ModelKind = None,
    out: Out = None,
    processes: Annotated[int, typer.Option("--processes", min=1, max=256, metavar="N", help="Use N cores.")] = 1,
    resolve: Resolve = None,
    allow_private: AllowPrivate = None,
    proxy: Proxy = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Crawl websites politely.

    Press Ctrl-C once to stop cleanly; resume later with --resume.
    """
    wishes = possible(fields(
        scope=scope, include=tuple(include or ()) or None, exclude=tuple(exclude or ()) or None, max_pages=max_pages,
        max_depth=max_depth, delay_s=delay, per_host=per_host, lane=lane, render=render, sitemaps=sitemaps,
        cookies=cookies, schema=schema, rubric=rubric, llm=llm,
    ))  # fmt: skip
    options = _options(resolve, allow_private, proxy, llm)
    settings = settings_from(config, data_dir, **options)
    _check_beginning(urls, from_, resume)
    what: Crawl | str
    if resume is not None:
        _check_changes(wishes)
        what, settings = _stored(resume, settings, config, data_dir, options)
    else:
        what = new_crawl(**wishes)
    found = seeds.read(urls or (), from_)
    target = target_of(out)
    _finish(run_and_export(settings, what, found, target, processes, as_json, wishes), settings, target, as_json)


def _options(
    resolve: list[str] | None, allow_private: list[str] | None, proxy: list[str] | None, llm: str | None
) -> dict[str, Any]:
    """What the command line says of settings."""
    return {
        "resolve": tuple(resolve) if resolve else None,
        "allow_private": tuple(allow_private) if allow_private else None,
        "proxies": {"default": tuple(proxy)} if proxy else None,
        "llm": llm,
    }


def _check_beginning(urls: list[str] | None, from_: Path | None, resume: str | None) -> None:
    if resume is not None and (urls or from_):
        raise UsageError("--resume goes on with the seeds it has: leave the URLs and --from out.")
    if resume is None and not urls and from_ is None:
        raise UsageError(
            "Give at least one URL, or --from FILE, or --resume ID. For example: curtsy crawl https://example.com/"
        )


def _check_changes(wishes: dict[str, Any]) -> None:
    if fixed := sorted(wishes.keys() - CHANGEABLE):
        options = ", ".join("--" + name.replace("_", "-") for name in fixed)
        raise UsageError(f"{options} cannot be changed when a crawl is resumed: leave it out, or start a new crawl.")


def _stored(
    which: str, settings: Settings, config: Path | None, data_dir: Path | None, options: dict[str, Any]
) -> tuple[str, Settings]:
    """The id of a crawl, and the settings it goes on with: those it had, and what is given now."""
    with Store.open(settings.effective_store_url, create=False) as store, store.read() as tx:
        crawl = crawls.get(tx, which)
        kept = crawls.settings_of(tx, crawl.n)
    settings = load(config, kept.get("settings"), data_dir=data_dir, **options)
    if lacking := missing(kept, settings):
        raise UsageError(
            f"Crawl {crawl.id} was made with {' and '.join(lacking)}, which may hold secrets and are not stored: give "
            f"them again by --config, the environment{' or --proxy' if 'proxies' in lacking else ''}."
        )
    return crawl.id, settings


def new_crawl(**fields: Any) -> Crawl:
    wanted = [fields.pop(name, None) for name in ("schema", "rubric", "llm")]
    if any(wanted):
        fields |= plan.crawl_fields(*wanted)
    fields["lane"] = Lane(fields.get("lane", "batch"))
    return Crawl(id=new_id(), request_id=new_id(), created_ms=clock.now_ms(), **fields)


def run_and_export(
    settings: Settings,
    what: Crawl | str,
    seeds: Iterable[str],
    out: Target,
    processes: int,
    as_json: bool,
    wishes: dict[str, Any] | None = None,
) -> Ended:
    """Run it to its end and export, or until it is interrupted: a part never stands under the name of the whole."""
    chosen = pages.format_of(out, None) if out else None
    if chosen is not None:
        pages.check_target(out, chosen)
    with progress.for_terminal(quiet=as_json) as shown:
        ended = drive(settings, what, seeds, shown.update, processes, wishes)
    if chosen is not None and not ended.interrupted:
        with Store.open(settings.effective_store_url) as store:
            pages.export(store, pages.segments_of(settings), ended.crawl, out, chosen)
    return ended


def _finish(ended: Ended, settings: Settings, out: Target, as_json: bool) -> None:
    if ended.interrupted:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: another press changes nothing
    if as_json:
        told = show.ledger(ended.crawl, ended.counts, ended.elapsed_s)
        made = {} if ended.crawl.schema is None else {"records": ended.records}
        show.document(told | made | {"counters": ended.counters})
        if ended.interrupted and out is not None:
            show.note(_not_exported(ended, out))
    else:
        print_summary(ended, settings, out)
    raise typer.Exit(ended.exit_code)


def print_summary(ended: Ended, settings: Settings, out: Target) -> None:
    counts = ended.counts
    rate = counts.pages / ended.elapsed_s if ended.elapsed_s else 0.0
    show.say(f"crawl         {ended.crawl.id} is {ended.crawl.state}")
    show.say(f"pages         {counts.pages:,} in {ended.elapsed_s:,.1f} s, {rate:,.1f}/s")
    show.say(f"hosts         {ended.hosts:,}")
    show.say(f"done          {counts.done:,} URLs")
    show.say(f"skipped       {show.reasons(counts.skipped)}")
    show.say(f"dead letters  {show.reasons(counts.failed | counts.failed_stages)}")
    if ended.crawl.schema is not None:
        show.say(f"records       {show.reasons(ended.records)}")
    show.say(
        f"data          {settings.store_url or settings.sqlite_path}, {settings.segments_url or settings.segments_dir}"
    )
    if out is not None and not ended.interrupted:
        show.say(f"pages are in  {out}")
    if ended.interrupted:
        go_on = next_commands.resume(ended.crawl.id, keep(settings))
        show.say(f"It has {counts.pending:,} URLs to go. Go on with: {go_on}")
        if out is not None:
            show.say(_not_exported(ended, out))
    elif ended.records.get("held"):
        show.say(f"Records are held until somebody looks at them: {next_commands.command('review', 'list')}")
    if not ended.interrupted and not counts.pages and counts.skipped:
        show.say(f"Nothing was fetched. {_why_skipped(counts.skipped)}")
    if not ended.interrupted and (counts.failed or counts.failed_stages):
        show.say(f"Look at them: {next_commands.command('failures', 'list', '--crawl', ended.crawl.id)}")


def _why_skipped(skipped: Mapping[str, int]) -> str:
    return " ".join(f"{reason}: {MEANINGS.get(reason, 'see `curtsy explain URL`')}." for reason in sorted(skipped))


def _not_exported(ended: Ended, out: Target) -> str:
    so_far = next_commands.command("export", ended.crawl.id, "--out", str(out))
    return f"{out} was not written: the crawl is not finished. What there is so far: {so_far}"
