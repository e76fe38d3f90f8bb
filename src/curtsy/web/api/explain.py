"""Why is this not done?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curtsy.control import explain as explaining
from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.core.model import UrlState
from curtsy.rules.urls import veiled
from curtsy.web.api.hosts import sight
from curtsy.web.models.explain import ExplainQuery, Explanation
from curtsy.web.routing import Call, endpoint


@endpoint(
    "GET",
    "/v1/explain",
    scope="read",
    query=ExplainQuery,
    answers={200: Explanation},
    problems=(404,),
    tags=("explain",),
)
def explain(call: Call) -> Explanation:
    """Where a URL or a host is and why it is not done.

    Queued behind how many, blocked until when and by whom, the line of robots.txt, the budget, the worker that has it,
    the dead letter that came of it.
    """
    query: ExplainQuery = call.query
    return _of_url(call, query) if query.url is not None else _of_host(call, query.host or "")


def _of_url(call: Call, query: ExplainQuery) -> Explanation:
    url, host = explaining.target(query.url or "", call.settings.politeness_unit)
    if url is None:
        raise UsageError(f"{veiled(query.url or '')!r} is no http or https URL.")
    crawl = None if query.crawl is None else call.crawl(query.crawl)
    now_ms = clock.now_ms()
    with call.store.read() as tx:
        facts = explaining.of_url(tx, url, call.settings, crawl)
    if facts.crawl is not None and facts.row is not None and facts.row.state == UrlState.OPEN:
        facts = replace(facts, sight=sight(call, host, facts.crawl.n, url))
    fields = explaining.document(facts, now_ms)
    del fields["host"]
    return Explanation(host=host, dead_letter=_letter(facts), queues=[], **fields)


def _letter(facts: explaining.UrlFacts) -> str | None:
    if facts.row is None or facts.crawl is None:
        return None
    if facts.row.state == UrlState.FAILED:
        return facts.failure.id if facts.failure is not None else None
    dead = facts.row.state == UrlState.OPEN and facts.queue is not None and facts.queue.state == "dead"
    return f"{facts.crawl.n}-{facts.row.fp.hex()}" if dead else None


def _of_host(call: Call, name: str) -> Explanation:
    host = call.host(name)
    seen = sight(call, host)
    with call.store.read() as tx:
        said, fields = explaining.of_host(tx, host, clock.now_ms(), seen)
    nothing: dict[str, Any] = dict.fromkeys(("url", "crawl", "state", "reason", "attempts", "retry_at", "page"))
    known = {name: fields[name] for name in ("robots", "frontier", "queues")}
    return Explanation(why=said, host=host, dead_letter=None, **known, **nothing)
