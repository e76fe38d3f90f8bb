"""The audit of the stored request log."""

from __future__ import annotations

from curtsy.control.audit import Verdict, judge
from curtsy.store import hosts, requests, summaries
from curtsy.store.engine import Store


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
