"""Why a crawl has no page, in one line."""

from __future__ import annotations

from typing import Any

from curtsy.cli import next_commands
from curtsy.control import explain
from curtsy.control.explain_text import MEANINGS
from curtsy.core.model import Counts, Crawl, Failure, UrlState
from curtsy.core.settings import Settings
from curtsy.rules.urls import fingerprint
from curtsy.store import failures, url_queries, urls


def why(tx: Any, crawl: Crawl, counts: Counts, settings: Settings) -> str:
    if (failure := _a_failure(tx, crawl.n)) is not None:
        said = [f"{failure.url}: {failure.cause}{failure.detail and f' ({failure.detail})'}."]
    elif (forbidden := _a_forbidden_url(tx, crawl, settings)) is not None:
        url, rule = forbidden
        said = [f"{url}: robots.txt disallows it by the line {rule!r}."]
    elif (missing := _a_missing_seed(tx, crawl)) is not None:
        url, reason = missing
        said = [f"{url}: {MEANINGS.get(reason, reason)}. See `{next_commands.command('explain', url)}`."]
    else:
        reasons = sorted(counts.skipped)
        said = [f"{reason}: {MEANINGS.get(reason, 'see `curtsy explain URL`')}." for reason in reasons]
    return " ".join(("No page was fetched.", *said))


def _a_failure(tx: Any, n: int) -> Failure | None:
    found = failures.find(tx, crawl=n, limit=1) or failures.of_dead_hosts(tx, crawl=n, limit=1)
    return found[0] if found else None


def _a_forbidden_url(tx: Any, crawl: Crawl, settings: Settings) -> tuple[str, str] | None:
    """A URL that robots.txt forbids, and the line that does."""
    for url in url_queries.skipped(tx, crawl.n, "robots", 1):
        facts = explain.of_url(tx, url, settings, crawl)
        return None if facts.rule is None else (url, facts.rule)
    return None


def _a_missing_seed(tx: Any, crawl: Crawl) -> tuple[str, str] | None:
    """A seed that is done, and why it has no page."""
    for url in url_queries.seeds(tx, crawl.n, 1)[0]:
        row = urls.get(tx, crawl.n, fingerprint(url))
        return None if row is None or row.state != UrlState.DONE else (url, row.reason)
    return None
