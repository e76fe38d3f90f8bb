"""`audit` and `explain`: the politeness of a crawl, and the state of a URL."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from curtsy.cli import DEAD_LETTERS, show
from curtsy.cli.backends import SharedOptions
from curtsy.cli.options import LocalOptions, OfCrawl, number_of
from curtsy.control import explain as explaining
from curtsy.control.audit import Verdict, coverage
from curtsy.control.stored_audit import judged
from curtsy.core.errors import UsageError
from curtsy.core.times import since_ms, timestamp
from curtsy.rules.urls import hide_credentials


def audit(
    shared: LocalOptions,
    crawl: OfCrawl = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only requests since then: 12h or 7d ago, or 2026-01-31."),
    ] = None,
) -> None:
    """Check the request log for impolite requests.

    The exit code is 1 if there are any.
    """
    with shared.stored() as (settings, store):
        n = number_of(store, crawl)
        verdict = judged(store, settings.agent, crawl=n, since_ms=since_ms(since, time.time()))
    if not shared.printed(verdict.document()):
        print_verdict(verdict)
    if not verdict.polite:
        raise typer.Exit(DEAD_LETTERS)


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
    shared: SharedOptions,
    target: Annotated[str, typer.Argument(metavar="URL|HOST", help="A URL, or a host without a scheme.")],
    crawl: OfCrawl = None,
) -> None:
    """Explain the state of a URL or a host."""
    if not explaining.target(target, "host")[1]:
        raise UsageError(f"{hide_credentials(target)!r} is neither an http or https URL nor a host.")
    found = shared.backend().explain(target, crawl)
    if shared.printed(found):
        return
    show.say(found.get("url") or target)
    for sentence in found["why"]:
        show.say(f"  {sentence}")
