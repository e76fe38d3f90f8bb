"""`crawl`: from URLs to committed pages; `demo`: the same over the tiny web."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curtsy.cli.options import AsJson, Config, DataDir, ModelKind, RubricName, SchemaName, settings_from

if TYPE_CHECKING:
    from curtsy.cli.driving import Ended
    from curtsy.destination import Target
    from curtsy.model import Crawl
    from curtsy.settings import Settings


#: what may be another when a crawl is resumed; the rest decided which URLs it has
CHANGEABLE = {"delay_s", "per_host", "max_pages"}


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
        str | None,
        typer.Option("--scope", metavar="host|domain|any", help="Which links belong to it.", show_default="host"),
    ] = None,
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
    lane: Annotated[
        str | None, typer.Option("--lane", metavar="high|batch|slow", help="Pool of work.", show_default="batch")
    ] = None,
    render: Annotated[
        str | None,
        typer.Option(
            "--render",
            metavar="never|auto|always",
            help="Show pages in a browser: those that say nothing without one (auto), or all.",
            show_default="never",
        ),
    ] = None,
    sitemaps: Annotated[
        bool | None,
        typer.Option(
            "--sitemaps/--no-sitemaps", help="Use the sitemaps that robots.txt names.", show_default="sitemaps"
        ),
    ] = None,
    cookies: Annotated[bool | None, typer.Option("--cookies", help="Keep a cookie jar per host.")] = None,
    schema: SchemaName = None,
    rubric: RubricName = None,
    llm: ModelKind = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="PATH", help="Export when it has finished: .jsonl, .csv, .parquet, .warc.gz or a folder."
        ),
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
    from curtsy.destination import target_of
    from curtsy.errors import UsageError

    if delay is not None and not delay >= 0:
        raise UsageError("--delay takes a number of seconds, for example 0.5.")
    wishes = {
        "scope": _one_of("--scope", scope, ("host", "domain", "any")),
        "include": tuple(include) if include else None,
        "exclude": tuple(exclude) if exclude else None,
        "max_pages": max_pages,
        "max_depth": max_depth,
        "delay_s": delay,
        "per_host": per_host,
        "lane": _one_of("--lane", lane, ("high", "batch", "slow")),
        "render": _one_of("--render", render, ("never", "auto", "always")),
        "sitemaps": sitemaps,
        "cookies": cookies,
        "schema": schema,
        "rubric": rubric,
        "llm": llm,
    }
    wishes = {name: value for name, value in wishes.items() if value is not None}
    options = {
        "resolve": tuple(resolve) if resolve else None,
        "allow_private": tuple(allow_private) if allow_private else None,
        "proxies": {"default": tuple(proxy)} if proxy else None,
        "llm": llm,
    }
    settings = settings_from(config, data_dir, **options)
    what: Crawl | str
    if resume is not None:
        if urls or from_:
            raise UsageError("--resume goes on with the seeds it has: leave the URLs and --from out.")
        _check_changes(wishes)
        what, settings = _stored(resume, settings, config, data_dir, options)
    elif urls or from_ is not None:
        what = _crawl(**wishes)
    else:
        raise UsageError(
            "Give at least one URL, or --from FILE, or --resume ID. For example: curtsy crawl https://example.com/"
        )
    found = () if resume is not None else seeds.read(urls or (), from_)
    target = target_of(out)
    _finish(_drive(settings, what, found, target, processes, as_json, wishes), settings, target, as_json)


def _check_changes(wishes: dict[str, Any]) -> None:
    from curtsy.errors import UsageError

    if fixed := sorted(wishes.keys() - CHANGEABLE):
        options = ", ".join("--" + name.replace("_", "-") for name in fixed)
        raise UsageError(f"{options} cannot be changed when a crawl is resumed: leave it out, or start a new crawl.")


def _stored(
    which: str, settings: Settings, config: Path | None, data_dir: Path | None, options: dict[str, Any]
) -> tuple[str, Settings]:
    """The id of a crawl, and the settings it goes on with: those it had, and what is given now."""
    from curtsy.errors import UsageError
    from curtsy.settings import load, missing
    from curtsy.store import crawls
    from curtsy.store.engine import Store

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


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="Where the pages go.")] = Path("out/pages.jsonl"),
    schema: SchemaName = None,
    rubric: RubricName = None,
    llm: ModelKind = None,
    render: Annotated[
        str | None, typer.Option("--render", metavar="never|auto|always", help="Show pages in a browser.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Crawl a selection of the tiny web, and judge it: what `make crawl` runs. With --schema also its records."""
    from curtsy.cli import DEAD_LETTERS, show
    from curtsy.cli.results import judged, print_verdict
    from curtsy.store.engine import Store
    from curtsy.tinyweb import TinyWeb, demo_seeds

    with TinyWeb.start() as web:
        settings = settings_from(Path("tinyweb.toml"), data_dir, resolve=(web.resolve_rule,), llm=llm)
        show.note(
            f"Crawling a selection of the tiny web on 127.0.0.1:{web.port}; some of its hosts are broken on purpose."
        )
        scored = rubric or (None if schema is None else "esg")
        shown = _one_of("--render", render, ("never", "auto", "always")) or "never"
        wanted = _crawl(schema=schema, rubric=scored, llm=llm, render=shown)
        ended = _drive(settings, wanted, demo_seeds(), out, 1, False)
    _summary(ended, settings, out)
    show.say()
    trusted = True
    with Store.open(settings.effective_store_url) as store:
        verdict = judged(store, settings.agent, crawl=ended.crawl.n)
        print_verdict(verdict)
        if schema is not None and not ended.interrupted:
            from curtsy.cli import evaluating

            trusted = evaluating.judged(store, ended.crawl)
    if ended.interrupted or not verdict.polite or not trusted:
        raise typer.Exit(ended.exit_code if ended.interrupted else DEAD_LETTERS)


def crawl_worker() -> None:
    """One more process of `crawl --processes N`; told on standard input what to do."""
    from curtsy.cli.worker import work

    raise typer.Exit(work())


def _crawl(**fields: Any) -> Crawl:
    import time

    from curtsy.model import Crawl, Lane, new_id

    wanted = [fields.pop(name, None) for name in ("schema", "rubric", "llm")]
    if any(wanted):
        from curtsy import plans

        fields |= plans.wished(*wanted)
    fields["lane"] = Lane(fields.get("lane", "batch"))
    return Crawl(id=new_id(), request_id=new_id(), created_ms=int(time.time() * 1000), **fields)


def _one_of(option: str, value: str | None, allowed: tuple[str, ...]) -> str | None:
    from curtsy.errors import UsageError

    if value is not None and value not in allowed:
        raise UsageError(f"{option} {value} is not possible here. Use {' or '.join(allowed)}.")
    return value


def _drive(
    settings: Settings,
    what: Crawl | str,
    seeds: Iterable[str],
    out: Target,
    processes: int,
    as_json: bool,
    wishes: dict[str, Any] | None = None,
) -> Ended:
    """Run it to its end and export, or until it is interrupted: a part never stands under the name of the whole."""
    from curtsy import export
    from curtsy.cli import progress
    from curtsy.cli.driving import drive

    chosen = export.format_of(out, None) if out else None
    if chosen is not None:
        export.check_target(out, chosen)
    with progress.for_terminal(quiet=as_json) as shown:
        ended = drive(settings, what, seeds, shown.update, processes, wishes)
    if chosen is not None and not ended.interrupted:
        from curtsy.store.engine import Store

        with Store.open(settings.effective_store_url) as store:
            export.export(store, export.segments_of(settings), ended.crawl, out, chosen)
    return ended


def _finish(ended: Ended, settings: Settings, out: Target, as_json: bool) -> None:
    import signal

    from curtsy.cli import show

    if ended.interrupted:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: another press changes nothing
    if as_json:
        told = show.ledger(ended.crawl, ended.counts, ended.elapsed_s)
        made = {} if ended.crawl.schema is None else {"records": ended.records}
        show.document(told | made | {"counters": ended.counters})
        if ended.interrupted and out is not None:
            show.note(_not_exported(ended, out))
    else:
        _summary(ended, settings, out)
    raise typer.Exit(ended.exit_code)


def _summary(ended: Ended, settings: Settings, out: Target) -> None:
    from curtsy.cli import hints, show
    from curtsy.settings import keep

    counts = ended.counts
    rate = counts.pages / ended.elapsed_s if ended.elapsed_s else 0.0
    show.say(f"crawl         {ended.crawl.id} is {ended.crawl.state}")
    show.say(f"pages         {counts.pages:,} in {ended.elapsed_s:,.1f} s, {rate:,.1f}/s")
    show.say(f"hosts         {ended.hosts:,}")
    show.say(f"done          {counts.done:,} URLs")
    show.say(f"skipped       {show.reasons(counts.skipped)}")
    show.say(f"dead letters  {show.reasons(dict(counts.failed) | ended.stages)}")
    if ended.crawl.schema is not None:
        show.say(f"records       {show.reasons(ended.records)}")
    show.say(
        f"data          {settings.store_url or settings.sqlite_path}, {settings.segments_url or settings.segments_dir}"
    )
    if out is not None and not ended.interrupted:
        show.say(f"pages are in  {out}")
    if ended.interrupted:
        go_on = hints.resume(ended.crawl.id, keep(settings))
        show.say(f"It has {counts.pending:,} URLs to go. Go on with: {go_on}")
        if out is not None:
            show.say(_not_exported(ended, out))
    elif ended.records.get("held"):
        show.say(f"Records are held until somebody looks at them: {hints.command('review', 'list')}")
    if not ended.interrupted and (counts.failed or ended.stages):
        show.say(f"Look at them: {hints.command('failures', 'list', '--crawl', ended.crawl.id)}")


def _not_exported(ended: Ended, out: Target) -> str:
    from curtsy.cli import hints

    so_far = hints.command("export", ended.crawl.id, "--out", str(out))
    return f"{out} was not written: the crawl is not finished. What there is so far: {so_far}"
