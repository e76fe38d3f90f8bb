"""`crawl`: from URLs to committed pages; `demo`: the same over the tiny web."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curtsy.cli.options import AsJson, Config, DataDir, settings_from

if TYPE_CHECKING:
    from curtsy.cli.driving import Ended
    from curtsy.model import Crawl
    from curtsy.settings import Settings


def register(app: typer.Typer) -> None:
    app.command()(crawl)
    app.command()(demo)
    app.command(hidden=True, name="crawl-worker")(crawl_worker)


def _list(name: str, metavar: str, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, rich_help_panel="Scope")


def crawl(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="URL...", help="Where to begin.", show_default=False)
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Seeds, one per line; - for standard input.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="ID", help="Go on with a crawl: its id, its beginning, or `last`.")
    ] = None,
    scope: Annotated[
        str, typer.Option("--scope", metavar="host|domain|any", help="Which links belong to it.")
    ] = "host",
    include: Annotated[
        list[str] | None, typer.Option("--include", metavar="RE", help="Only URLs that match one of these (RE2).")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="RE", help="No URLs that match one of these (RE2).")
    ] = None,
    max_pages: Annotated[
        int | None, typer.Option("--max-pages", min=1, max=10**12, metavar="N", help="End after N pages.")
    ] = None,
    max_depth: Annotated[
        int | None,
        typer.Option("--max-depth", min=0, max=10**6, metavar="N", help="At most N links from a seed."),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option("--delay", min=0, max=86400, metavar="S", help="Seconds between requests to a host."),
    ] = None,
    per_host: Annotated[
        int | None, typer.Option("--per-host", min=1, max=64, metavar="N", help="Requests under way at once to a host.")
    ] = None,
    lane: Annotated[str, typer.Option("--lane", metavar="high|batch|slow", help="Pool of work.")] = "batch",
    render: Annotated[
        str, typer.Option("--render", metavar="never", help="Rendering in a browser; not in this version.")
    ] = "never",
    sitemaps: Annotated[
        bool, typer.Option("--sitemaps/--no-sitemaps", help="Use the sitemaps that robots.txt names.")
    ] = True,
    cookies: Annotated[bool, typer.Option("--cookies", help="Keep a cookie jar per host.")] = False,
    schema: Annotated[
        str | None, typer.Option("--schema", metavar="NAME", help="Make records of its pages; built in: page.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PATH", help="Export at the end: .jsonl, .csv, .parquet, .warc.gz or a folder."),
    ] = None,
    processes: Annotated[int, typer.Option("--processes", min=1, max=256, metavar="N", help="Use N cores.")] = 1,
    resolve: Annotated[
        list[str] | None,
        typer.Option(
            "--resolve",
            metavar="PATTERN=ADDR:PORT",
            help="Where names go instead of DNS: '*.example.test=127.0.0.1:80'.",
        ),
    ] = None,
    allow_private: Annotated[
        list[str] | None, typer.Option("--allow-private", metavar="CIDR", help="Private addresses that may be asked.")
    ] = None,
    proxy: Annotated[
        list[str] | None, typer.Option("--proxy", metavar="URL", help="Send requests through one of these proxies.")
    ] = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Crawl websites politely; Ctrl-C once ends it well, and it can be resumed."""
    from curtsy.cli import seeds
    from curtsy.errors import UsageError

    settings = settings_from(
        config,
        data_dir,
        resolve=tuple(resolve) if resolve else None,
        allow_private=tuple(allow_private) if allow_private else None,
        proxies={"default": tuple(proxy)} if proxy else None,
    )
    if resume is not None:
        if urls or from_:
            raise UsageError("--resume goes on with the seeds it has: leave the URLs and --from out.")
        _finish(_drive(settings, resume, (), out, processes, as_json), settings, out, as_json)
        return
    if not urls and from_ is None:
        raise UsageError(
            "Give at least one URL, or --from FILE, or --resume ID. For example: curtsy crawl https://example.com/"
        )
    wanted = _crawl(
        scope=_one_of("--scope", scope, ("host", "domain", "any")),
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        max_pages=max_pages,
        max_depth=max_depth,
        delay_s=delay,
        per_host=per_host,
        lane=_one_of("--lane", lane, ("high", "batch", "slow")),
        render=_one_of("--render", render, ("never",)),
        sitemaps=sitemaps,
        cookies=cookies,
        schema=schema,
    )
    ended = _drive(settings, wanted, seeds.read(urls or (), from_), out, processes, as_json)
    _finish(ended, settings, out, as_json)


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="Where the pages go.")] = Path("out/pages.jsonl"),
    data_dir: DataDir = None,
) -> None:
    """Crawl a selection of the tiny web, and judge it: what `make crawl` runs."""
    from curtsy.cli import DEAD_LETTERS, show
    from curtsy.cli.results import judged, print_verdict
    from curtsy.store.engine import Store
    from curtsy.tinyweb import TinyWeb, demo_seeds

    with TinyWeb.start() as web:
        settings = settings_from(Path("tinyweb.toml"), data_dir, resolve=(web.resolve_rule,))
        show.note(
            f"Crawling a selection of the tiny web on 127.0.0.1:{web.port}; some of its hosts are broken on purpose."
        )
        ended = _drive(settings, _crawl(), demo_seeds(), out, 1, False)
    _summary(ended, settings, out)
    show.say()
    with Store.open(settings.effective_store_url) as store:
        verdict = judged(store, settings.agent, crawl=ended.crawl.n)
    print_verdict(verdict)
    if ended.interrupted or not verdict.polite:
        raise typer.Exit(ended.exit_code if ended.interrupted else DEAD_LETTERS)


def crawl_worker() -> None:
    """One more process of `crawl --processes N`; told on standard input what to do."""
    from curtsy.cli.worker import work

    raise typer.Exit(work())


def _crawl(**fields: Any) -> Crawl:
    import time

    from curtsy.errors import UsageError
    from curtsy.model import Crawl, Lane, new_id

    if fields.get("schema") is not None:
        from curtsy.stages import check_schema

        check_schema(fields["schema"])
    fields["lane"] = Lane(fields.get("lane", "batch"))
    if fields.get("delay_s") is not None and not fields["delay_s"] >= 0:
        raise UsageError("--delay takes a number of seconds, for example 0.5.")
    return Crawl(id=new_id(), request_id=new_id(), created_ms=int(time.time() * 1000), **fields)


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> str:
    from curtsy.errors import UsageError

    if value not in allowed:
        raise UsageError(f"{option} {value} is not possible here. Use {' or '.join(allowed)}.")
    return value


def _drive(
    settings: Settings, what: Crawl | str, seeds: Iterable[str], out: Path | None, processes: int, as_json: bool
) -> Ended:
    """Run it to its end, or until it is interrupted; then export."""
    from curtsy import export
    from curtsy.cli import progress
    from curtsy.cli.driving import drive

    chosen = export.format_of(out, None) if out else None
    if chosen is not None:
        export.check_target(out, chosen)
    with progress.for_terminal(quiet=as_json) as shown:
        ended = drive(settings, what, seeds, shown.update, processes)
    if chosen is not None:
        from curtsy.store.engine import Store

        with Store.open(settings.effective_store_url) as store:
            export.export(store, export.segments_of(settings), ended.crawl, out, chosen)
    return ended


def _finish(ended: Ended, settings: Settings, out: Path | None, as_json: bool) -> None:
    import signal

    from curtsy.cli import show

    if ended.interrupted:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: another press changes nothing
    if as_json:
        show.document(show.ledger(ended.crawl, ended.counts, ended.elapsed_s) | {"counters": ended.counters})
    else:
        _summary(ended, settings, out)
    raise typer.Exit(ended.exit_code)


def _summary(ended: Ended, settings: Settings, out: Path | None) -> None:
    from curtsy.cli import show
    from curtsy.cli.driving import resume_hint

    counts = ended.counts
    rate = counts.pages / ended.elapsed_s if ended.elapsed_s else 0.0
    show.say(f"crawl         {ended.crawl.id} is {ended.crawl.state}")
    show.say(f"pages         {counts.pages:,} in {ended.elapsed_s:,.1f} s, {rate:,.1f}/s")
    show.say(f"hosts         {ended.hosts:,}")
    show.say(f"done          {counts.done:,} URLs")
    show.say(f"skipped       {show.reasons(counts.skipped)}")
    show.say(f"dead letters  {show.reasons(dict(counts.failed) | ended.stages)}")
    show.say(
        f"data          {settings.store_url or settings.sqlite_path}, {settings.segments_url or settings.segments_dir}"
    )
    if out is not None:
        show.say(f"pages are in  {out}")
    if ended.interrupted:
        show.say(f"It has {counts.pending:,} URLs to go. Go on with: {resume_hint(ended.crawl.id)}")
    elif counts.failed or ended.stages:
        show.say(f"Look at them: curtsy failures list --crawl {ended.crawl.id}")
