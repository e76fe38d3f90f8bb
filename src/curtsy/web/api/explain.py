"""Why a URL or host is not done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curtsy.control import explain as explaining
from curtsy.core import clock
from curtsy.core.errors import CurtsyError, UsageError
from curtsy.core.model import UrlState
from curtsy.core.observe import log
from curtsy.fleet.coordination import beat_problem
from curtsy.rules.urls import hide_credentials
from curtsy.web.api.hosts import inspect
from curtsy.web.models.explain import ExplainQuery, Explanation
from curtsy.web.routing import Call, endpoint


@endpoint("GET", "/v1/explain", scope="read", problems=(404,))
def explain(call: Call, query: ExplainQuery) -> Explanation:
    """The state of a URL or host, and why it is not done.

    The answer includes the position in the queue, blocks and their reason, the robots.txt rule, the page budget, the
    worker that holds the URL, and the dead letter.
    """
    return _explain_url(call, query) if query.url is not None else _explain_host(call, query.host or "")


def _explain_url(call: Call, query: ExplainQuery) -> Explanation:
    url, host = explaining.target(query.url or "", call.settings.politeness_unit)
    if url is None:
        raise UsageError(f"{hide_credentials(query.url or '')!r} is not an http or https URL.")
    crawl = None if query.crawl is None else call.crawl(query.crawl)
    now_ms = clock.now_ms()
    with call.store.read() as tx:
        facts = explaining.of_url(tx, url, call.settings, crawl)
    if facts.crawl is not None and facts.row is not None and facts.row.state == UrlState.OPEN:
        facts = replace(facts, snapshot=inspect(call, host, facts.crawl.n, facts.url))
    fields = explaining.document(facts, now_ms)
    if facts.row is not None and facts.row.state == UrlState.OPEN:
        fields["why"] = [*fields["why"], *_without_beat(call)]
    return Explanation.model_validate(fields | {"host": host, "dead_letter": _dead_letter(facts), "queues": []})


def _without_beat(call: Call) -> list[str]:
    """Nothing is fetched while Beat does not run."""
    if call.services is None:
        return []
    try:
        problem = beat_problem(call.wait(call.backend.fleet.beat_age_s()))
    except CurtsyError as error:
        log("frontier_unavailable", level="warning", error=str(error))
        return []
    return [] if problem is None else [f"No work starts: {problem}. Start it with: curtsy beat"]


def _dead_letter(facts: explaining.UrlFacts) -> str | None:
    if facts.row is None or facts.crawl is None:
        return None
    if facts.row.state == UrlState.FAILED:
        return facts.failure.id if facts.failure is not None else None
    dead = facts.row.state == UrlState.OPEN and facts.queue is not None and facts.queue.state == "dead"
    return f"{facts.crawl.n}-{facts.row.fp.hex()}" if dead else None


def _explain_host(call: Call, name: str) -> Explanation:
    host = call.host(name)
    seen = inspect(call, host)
    with call.store.read() as tx:
        why, fields = explaining.of_host(tx, host, clock.now_ms(), seen)
    absent: dict[str, Any] = dict.fromkeys(Explanation.model_fields.keys() - {"waits_for_rendering"})
    known = {name: fields[name] for name in ("robots", "frontier", "queues")}
    waits = any(queue["state"] == "open" for queue in fields["queues"])
    why = [*why, *(_without_beat(call) if waits else ())]
    return Explanation.model_validate(absent | known | {"why": why, "host": host})
