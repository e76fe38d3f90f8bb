"""`export`, `audit` and `explain`: the results of a crawl, its politeness, and the state of a URL."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from curtsy.cli import DEAD_LETTERS, show
from curtsy.cli.backends import Api, backend
from curtsy.cli.options import AsJson, Config, DataDir, OfCrawl, WhichCrawl, number_of, stored
from curtsy.control import explain as explaining
from curtsy.control.audit import Verdict, coverage, judge
from curtsy.core.errors import UsageError
from curtsy.core.times import since_ms, timestamp
from curtsy.export import page_increments, pages, record_increments, records
from curtsy.export.targets import target_of
from curtsy.rules.urls import veiled
from curtsy.store import crawls, hosts, requests, summaries
from curtsy.store.engine import Store

Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="PATH",
        help=".jsonl, .csv, .parquet, .warc.gz or a folder; also s3://...",
        show_default="standard output",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help="jsonl, csv, parquet, warc or markdown.", show_default="from --out"
    ),
]
CsvSafe = Annotated[bool, typer.Option("--csv-safe", help="Make CSV safe for spreadsheets: no formulas.")]
FullPage = Annotated[
    bool,
    typer.Option("--full-page", help="Markdown with menus, headers, footers and related links, not only the content."),
]
What = Annotated[str, typer.Option("--what", metavar="pages|records", help="What to export.")]
Incremental = Annotated[
    bool, typer.Option("--incremental", help="Add what is new since the last export to the folder --out.")
]


def export(
    crawl: WhichCrawl = "last",
    out: Out = None,
    format_: Format = None,
    csv_safe: CsvSafe = False,
    full_page: FullPage = False,
    what: What = "pages",
    incremental: Incremental = False,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Export the pages or records of a crawl."""
    _check_what(what, to_stdout=out is None, as_json=as_json)
    target = target_of(out)
    chosen = pages.format_of(target, format_)
    _check_format(chosen, what, csv_safe, full_page)
    (page_increments if incremental else pages).check_target(target, chosen)
    with stored(config, data_dir) as (settings, store):
        with store.read() as tx:
            found = crawls.get(tx, crawl)
        if what == "records":
            write_records = record_increments.add if incremental else records.export_records
            written = write_records(store, found, target, chosen, csv_safe)
        else:
            write = page_increments.add if incremental else pages.export
            written = write(store, pages.segments_of(settings), found, target, chosen, csv_safe, full_page)
    if as_json:
        show.document({"id": found.id, "format": chosen.value, "out": out, what: written})
    elif out is not None:
        show.note(f"{written:,} {'new ' if incremental else ''}{what} written to {out}")


def _check_what(what: str, *, to_stdout: bool, as_json: bool) -> None:
    if what not in ("pages", "records"):
        raise UsageError(f"Invalid --what {what!r}. Use pages or records.")
    if as_json and to_stdout:
        raise UsageError(f"With --json, standard output is for the document: export the {what} with --out PATH.")


def _check_format(chosen: pages.Format, what: str, csv_safe: bool, full_page: bool) -> None:
    if full_page and chosen != "markdown":
        raise UsageError(f"--full-page works with Markdown only, not with {chosen}.")
    if csv_safe and chosen != "csv":
        raise UsageError(f"--csv-safe works with CSV only, not with {chosen}.")
    if what == "records":
        records.check(chosen)


def audit(
    crawl: OfCrawl = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only requests since then: 12h or 7d ago, or 2026-01-31."),
    ] = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Check the request log for impolite requests.

    The exit code is 1 if there are any.
    """
    with stored(config, data_dir) as (settings, store):
        n = number_of(store, crawl)
        verdict = judged(store, settings.agent, crawl=n, since_ms=since_ms(since, time.time()))
    if as_json:
        show.document(verdict.document())
    else:
        print_verdict(verdict)
    if not verdict.polite:
        raise typer.Exit(DEAD_LETTERS)


def judged(store: Store, agent: str, *, crawl: int | None = None, since_ms: int = 0) -> Verdict:
    """The verdict on the stored request log."""
    # Two transactions: one streams the log while the other looks up rules.
    with store.read() as rows, store.read() as rules:
        return judge(
            requests.by_host(rows, since_ms=since_ms, crawl=crawl),
            lambda origin: hosts.get_robots(rules, [origin]).get(origin),
            agent,
            pages_without_request=summaries.pages_without_request(rules, crawl, since_ms),
        )


def print_verdict(verdict: Verdict) -> None:
    gap = "-" if verdict.min_gap_s is None else f"{verdict.min_gap_s:.3f} s"
    show.say(f"overlapping requests  {verdict.overlaps:,}")
    show.say(f"early requests        {verdict.early:,}")
    show.say(f"robots violations     {verdict.robots_violations:,}")
    show.say(f"shortest gap          {gap}")
    for finding in verdict.findings:
        at = timestamp(finding.start_ms)
        show.say(f"  {finding.what}: {finding.host} at {at}, {finding.url}: {finding.detail}")
    for line in coverage(verdict):
        show.say(line)
    show.say("Polite." if verdict.polite else "NOT polite.")


def explain(
    target: Annotated[str, typer.Argument(metavar="URL|HOST", help="A URL, or a host without a scheme.")],
    crawl: OfCrawl = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    api: Api = None,
) -> None:
    """Explain the state of a URL or a host."""
    if not explaining.target(target, "host")[1]:
        raise UsageError(f"{veiled(target)!r} is neither an http or https URL nor a host.")
    found = backend(api, config, data_dir).explain(target, crawl)
    if as_json:
        show.document(found)
        return
    show.say(found.get("url") or target)
    for sentence in found["why"]:
        show.say(f"  {sentence}")
