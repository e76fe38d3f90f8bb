"""`crawl`: from URLs to committed pages, in this process and its helpers."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curtsy.cli import next_commands, progress, seeds, show
from curtsy.cli.crawl_options import From, Urls, project_of, request_of, with_crawl_options
from curtsy.cli.options import AsJson, Config, DataDir, settings_from
from curtsy.cli.run_crawl import Ended, drive
from curtsy.control.crawl_request import crawl_of
from curtsy.control.seeds import has_placeholder, is_public
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, new_id
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import keep, load, missing, of_environment
from curtsy.store import crawls
from curtsy.store.engine import Store

if TYPE_CHECKING:
    from curtsy.export.targets import Target

#: options that may change when a crawl is resumed; the others determine its URLs
CHANGEABLE = {"delay_s", "per_host", "max_pages"}
#: the beginning of an id is its time in milliseconds: enough to name a crawl in a line of 80 columns
_SHORT = 13
#: where the pages of an interrupted crawl are
_SO_FAR = "The pages so far are in {}. A resumed crawl continues it."


Resume = Annotated[str | None, typer.Option("--resume", metavar="ID", help="Resume a crawl: its id, or `last`.")]
Processes = Annotated[int, typer.Option("--processes", min=1, max=256, metavar="N", help="Use N processes.")]
GiveUp = Annotated[bool, typer.Option("--give-up", help="At the end, do not wait for hosts that do not answer.")]
Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="PATH",
        help="Export the pages: .jsonl, .csv, .parquet, .warc.gz or a folder.",
        rich_help_panel="Output",
    ),
]
Resolve = Annotated[
    list[str] | None,
    typer.Option(
        "--resolve",
        metavar="HOST=ADDR:PORT",
        help="Use this address, not DNS; * matches any text.",
        rich_help_panel="Network",
    ),
]
AllowPrivate = Annotated[
    list[str] | None,
    typer.Option("--allow-private", metavar="CIDR", help="Allow private addresses.", rich_help_panel="Network"),
]
Proxy = Annotated[
    list[str] | None,
    typer.Option("--proxy", metavar="URL", help="Use this proxy; may be repeated.", rich_help_panel="Network"),
]
ProxyDns = Annotated[
    bool, typer.Option("--proxy-dns", help="Let the proxies of --proxy resolve names.", rich_help_panel="Network")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress, only the summary.", rich_help_panel="Output")]


@with_crawl_options
def crawl(
    options: dict[str, Any],
    urls: Urls = None,
    from_: From = None,
    resume: Resume = None,
    processes: Processes = 1,
    give_up: GiveUp = False,
    out: Out = None,
    resolve: Resolve = None,
    allow_private: AllowPrivate = None,
    proxy: Proxy = None,
    proxy_dns: ProxyDns = False,
    config: Config = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Crawl websites politely.

    Press Ctrl-C once to stop cleanly; resume later with --resume.
    """
    if resume is None:
        project = project_of(config)
        options = project.options | options
        from_ = project.seeds if not urls and from_ is None else from_
        out = out if out is not None else project.out
    request = request_of(options)
    changed = {
        "resolve": tuple(resolve) if resolve else None,
        "allow_private": tuple(allow_private) if allow_private else None,
        "proxies": {"default": tuple(proxy)} if proxy else None,
        "proxy_dns": ("default",) if proxy_dns else None,
        "llm": request.llm,
    }
    settings = settings_from(config, data_dir, **changed)
    _check_seeds(urls, from_, resume)
    what: Crawl | str
    if resume is not None:
        _check_changes(options)
        what, settings = _stored(resume, settings, config, data_dir, changed)
    else:
        what = crawl_of(request, settings, new_id())
    target = None if out is None and resume is None else _target(out, what, from_, config, settings)
    ended = run_and_export(settings, what, _seeds(urls, from_, settings), target, processes, quiet, options, give_up)
    _finish(ended, settings, target, as_json)


def _seeds(urls: list[str] | None, from_: Path | None, settings: Settings) -> Iterator[str]:
    """The seeds. The first public seed causes a warning if the User-Agent names no contact."""
    warned = not has_placeholder(settings)
    for url in seeds.read(urls or (), from_):
        if not warned and is_public(url, settings):
            warned = True
            show.note(
                "curtsy: the contact in the User-Agent is a placeholder, so the owner of a site cannot reach you. Set "
                "contact in curtsy.toml, or CURTSY_CONTACT, to your e-mail address or a page about the crawl."
            )
        yield url


def _target(out: str | None, what: Crawl | str, from_: Path | None, config: Path | None, settings: Settings) -> Target:
    """The output that --out names, or that an interrupted crawl was writing, to continue it."""
    from curtsy.cli import live_output  # start-up: exports, for crawls with an output

    if out is None and isinstance(what, str):
        return live_output.output_before(what, settings)
    return live_output.output_of(out, from_, config or of_environment(), settings)


def _check_seeds(urls: list[str] | None, from_: Path | None, resume: str | None) -> None:
    if resume is not None and (urls or from_):
        raise UsageError("A resumed crawl keeps its seeds. Remove the URLs and --from, or start a new crawl.")
    if resume is None and not urls and from_ is None:
        raise UsageError(
            "Give at least one URL, or --from FILE, or --resume ID. For example: curtsy crawl https://example.com/. "
            "To make a project that needs no options: curtsy init"
        )


def _check_changes(options: Mapping[str, Any]) -> None:
    if fixed := sorted(options.keys() - CHANGEABLE):
        names = ", ".join("--" + name.replace("_", "-") for name in fixed)
        raise UsageError(f"{names} cannot be changed when a crawl is resumed. Remove it, or start a new crawl.")


def _stored(
    which: str, settings: Settings, config: Path | None, data_dir: Path | None, changed: dict[str, Any]
) -> tuple[str, Settings]:
    """The id of a crawl and the settings to resume it with: those it had, and what is given now."""
    with Store.open(settings.effective_store_url, create=False) as store, store.read() as tx:
        crawl = crawls.get(tx, which)
        kept = crawls.settings_of(tx, crawl.n)
    settings = load(config, kept.get("settings"), data_dir=data_dir, **changed)
    if lacking := missing(kept, settings):
        raise UsageError(
            f"Crawl {crawl.id} was made with {' and '.join(lacking)}. They may hold secrets and are not stored: give "
            f"them again with --config, the environment{' or --proxy' if 'proxies' in lacking else ''}."
        )
    return crawl.id, settings


def run_and_export(
    settings: Settings,
    what: Crawl | str,
    seeds: Iterable[str],
    out: Target,
    processes: int,
    quiet: bool = False,
    options: Mapping[str, Any] | None = None,
    give_up: bool = False,
) -> Ended:
    """Run a crawl and write its pages while it runs."""
    most = what.max_pages if isinstance(what, Crawl) else None
    if out is None:
        with progress.for_terminal(quiet=quiet, most=most) as shown:
            return drive(settings, what, seeds, shown, processes, options, give_up)
    from curtsy.cli import live_output  # start-up: exports, for crawls with an output

    with live_output.following(settings, out) as follower:
        with progress.for_terminal(quiet=quiet, most=most) as shown:
            ended = drive(settings, what, seeds, shown, processes, options, give_up, follower.follow)
        follower.finish(ended.crawl, finished=not ended.interrupted)
    return ended


def _finish(ended: Ended, settings: Settings, out: Target, as_json: bool) -> None:
    if ended.interrupted:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: another Ctrl-C changes nothing
    if as_json:
        records = {} if ended.crawl.schema is None else {"records": ended.records}
        show.document(show.ledger(ended.status) | records | {"counters": ended.counters})
        if ended.interrupted and out is not None:
            show.note(_SO_FAR.format(out))
        elif not ended.interrupted and ended.no_page is not None:
            show.note(ended.no_page)
    else:
        print_summary(ended, settings, out)
    raise typer.Exit(ended.exit_code)


def print_summary(ended: Ended, settings: Settings, out: Target) -> None:
    counts = ended.counts
    rate = counts.pages / ended.elapsed_s if ended.elapsed_s else 0.0
    show.say(f"crawl         {ended.crawl.id} is {ended.state}")
    show.say(f"pages         {counts.pages:,} in {ended.elapsed_s:,.1f} s, {rate:,.1f}/s")
    silent = ended.hosts - ended.requested_hosts
    show.say(f"hosts         {ended.requested_hosts:,}" + (f", and {silent:,} without a request" if silent > 0 else ""))
    show.say(f"done          {show.number(counts.done, 'URL')}")
    show.say(f"skipped       {show.reasons(counts.skipped)}")
    show.say(f"dead letters  {show.reasons(counts.failed | counts.failed_stages)}")
    if ended.crawl.schema is not None:
        show.say(f"records       {show.reasons(ended.records)}")
    show.say(
        f"data          {settings.store_url or settings.sqlite_path}, {settings.segments_url or settings.segments_dir}"
    )
    if ended.interrupted:
        command = next_commands.resume(ended.crawl.id, keep(settings))
        show.say(f"{show.number(counts.pending, 'URL')} pending. Resume with: {command}")
        if out is not None:
            show.say(_SO_FAR.format(out))
        return
    if out is not None:
        show.say(f"pages are in  {out}")
    if ended.records.get("published"):
        export = next_commands.command("export", "last", "--records", "--out", "records.xlsx")
        show.say(f"Export the records: {export}")
    if ended.records.get("held"):
        show.say(f"Some records need a review: {next_commands.command('review', 'list')}")
    if n := ended.contradicted:
        choose = next_commands.command("review", "list", "--needs", "field")
        show.say(f"{show.number(n, 'record')} published without contradicted fields. Decide about them: {choose}")
    if ended.no_page is not None:
        show.say(ended.no_page)
    if counts.failed or counts.failed_stages:
        show.say(f"Show dead letters: {next_commands.command('failures', 'list', '--crawl', ended.crawl.id[:_SHORT])}")
