"""Explain why a URL is not done: what the store and the frontier know about a URL or host. explain_text.py turns it
into sentences.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from curtsy.content.needs_browser import goes_directly
from curtsy.control.explain_text import MEANINGS, about_host, about_silence, next_slot, sentences
from curtsy.core.errors import EpochLost, FrontierUnavailable
from curtsy.core.model import Crawl, Failure, HostState, Kind, Page, Request, RobotsState, UrlState
from curtsy.core.observe import log
from curtsy.core.times import timestamp
from curtsy.frontier.inspect import HostSnapshot, snapshot
from curtsy.rules import robots_policy
from curtsy.rules.folding import Folding
from curtsy.rules.urls import Scope, fingerprint, host_key, normalise, origin
from curtsy.services.valkey import EmbeddedValkey
from curtsy.store import (
    crawls,
    dashboard_queries,
    failures,
    hosts,
    meta,
    pages,
    queues,
    records,
    responses,
    sites,
    url_queries,
    urls,
)
from curtsy.store.responses import Response

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from curtsy.core.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFacts:
    """Everything known about one URL in one crawl; `row` is `None` if the crawl does not know the URL."""

    url: str
    crawl: Crawl | None
    row: urls.UrlRow | None
    queue: queues.Queue | None
    host: HostState
    robots: RobotsState | None
    #: the line of robots.txt that applies
    rule: str | None
    allowed: bool | None
    page: Page | None
    #: its last redirect or error that is stored
    response: Response | None
    failure: Failure | None
    requests: tuple[Request, ...]
    #: why the URL is outside the crawl's scope; None: it is inside
    out_of_scope: str | None
    #: what a language model's failure left out of the record of the page or of its site
    incomplete: dict[str, Any] | None = None
    #: the URL that named it first; None: it is a seed, or it is not known
    referrer: str | None = None
    #: for a redirect: whether the crawl knows its target, and why the target is outside the scope
    target_known: bool = False
    target_out_of_scope: str | None = None
    #: first failure since the host stopped answering, and its time
    silent: tuple[str, int] | None = None
    #: the frontier's state; None: not asked, or not available
    snapshot: HostSnapshot | None = None
    #: the URL of the query, if it was folded into `url`, and the rules that changed it
    folded_from: str | None = None
    folded_by: tuple[str, ...] = ()
    #: how the suggested commands begin, and the options that they repeat: --data-dir, --config
    program: str = "curtsy"
    options: str = ""


def of_url(tx: Connection, url: str, settings: Settings, crawl: Crawl | None) -> UrlFacts:
    """Collect the facts of a normalized URL. Without a crawl, use the newest one that knows it, or else the newest.

    If no crawl knows it as it is, they are the facts of the URL that it is folded into.
    """
    asked, folding = url, Folding.of(settings)
    crawl = crawl or _best_crawl(tx, [fingerprint(url), fingerprint(folding.links(url))])
    if crawl is not None:
        folding = _folding_of(tx, crawl, settings)
    if (folded := folding.links(url)) != url and (crawl is None or urls.get(tx, crawl.n, fingerprint(url)) is None):
        url = folded
    fp = fingerprint(url)
    host = host_key(url, settings.politeness_unit)
    row = urls.get(tx, crawl.n, fp) if crawl else None
    state = hosts.get_robots(tx, [origin(url)]).get(origin(url))
    rules = robots_policy.parsed(state)
    known, outside = _about_target(tx, crawl, row)
    return UrlFacts(
        url=url,
        crawl=crawl,
        row=row,
        queue=queues.get(tx, [(crawl.n, host)]).get((crawl.n, host)) if crawl else None,
        host=hosts.get(tx, host) or HostState(host=host),
        robots=state,
        rule=rules.rule(url, settings.agent) if rules else None,
        allowed=None
        if state is None or state.verdict in MEANINGS
        else state.verdict != "forbid" and (not rules or rules.allows(url, settings.agent)),
        page=pages.get(tx, crawl.n, fp) if crawl else None,
        response=responses.newest(tx, fp, crawl.n) if crawl else None,
        failure=failures.under(tx, row.fence, fp) if row and row.state == UrlState.FAILED else None,
        requests=tuple(dashboard_queries.requests_of_url(tx, host, url, fp)),
        out_of_scope=Scope.of(crawl).admits(url, 0) if crawl and row is None else None,
        incomplete=_incomplete(tx, crawl, fp, host),
        referrer=_referrer(tx, row),
        target_known=known,
        target_out_of_scope=outside,
        silent=queues.faults(tx, host).get(host),
        folded_from=None if url == asked else asked,
        folded_by=() if url == asked else tuple(folding.links.changed_by(asked)),
    )


def _incomplete(tx: Connection, crawl: Crawl | None, fp: bytes, host: str) -> dict[str, Any] | None:
    """Return the note of a record that lacks a model's values, with the record's number."""
    for subject in (fp.hex(), sites.subject_of(host)) if crawl is not None and crawl.schema is not None else ():
        made = records.of_subject(tx, crawl.n, subject) if crawl is not None else []
        current = [one for one in made if crawl is not None and one.schema_hash == crawl.schema_hash]
        if current and (failure := current[-1].failure) is not None:
            return {"record": str(current[-1].n), **failure}
    return None


def _referrer(tx: Connection, row: urls.UrlRow | None) -> str | None:
    if row is None or row.found_on is None:
        return None
    key = (row.crawl, row.found_on)
    return url_queries.addresses(tx, [key]).get(key)


def _about_target(tx: Connection, crawl: Crawl | None, row: urls.UrlRow | None) -> tuple[bool, str | None]:
    """Whether the crawl knows the target of a redirect; if not, why the target is outside the scope."""
    if crawl is None or row is None or row.target is None:
        return False, None
    if urls.get(tx, crawl.n, fingerprint(row.target)) is not None:
        return True, None
    return False, Scope.of(crawl).admits(row.target, row.depth)


def _folding_of(tx: Connection, crawl: Crawl, settings: Settings) -> Folding:
    """The rules that the crawl was made with."""
    kept = crawls.settings_of(tx, crawl.n).get("settings", {})
    return Folding(kept.get("fold", settings.fold), kept.get("tracking_parameters", settings.tracking_parameters))


def with_frontier(tx: Connection, facts: UrlFacts, settings: Settings) -> UrlFacts:
    """Add what the frontier knows about an open URL, if its server runs. Never starts a server."""
    if facts.crawl is None or facts.row is None or facts.row.state != UrlState.OPEN:
        return facts
    render = facts.row.kind == Kind.BROWSER
    return replace(
        facts, snapshot=frontier_snapshot(tx, settings, facts.host.host, facts.crawl.n, facts.url, render=render)
    )


def frontier_snapshot(
    tx: Connection, settings: Settings, host: str, crawl: int | None = None, url: str | None = None,
    *, render: bool = False,
) -> HostSnapshot | None:  # fmt: skip
    """Return the frontier's state of a host or URL; None if its server does not run or has no data of this store."""
    server = settings.frontier_url
    if server is None:
        running = EmbeddedValkey.running(settings.data_dir)
        if running is None:
            return None
        server = running.url
    # The shards of the crawls count, not the settings of this command.
    shards = int(meta.get(tx, "shards") or settings.shards or 1)
    epochs = [int(meta.get(tx, f"epoch:{shard}") or 0) for shard in range(shards)]
    try:
        given = settings.model_copy(update={"shards": shards})
        return asyncio.run(snapshot(server, given, epochs, host, crawl, url, render=render))
    except (EpochLost, FrontierUnavailable) as error:
        log("frontier_unavailable", level="warning", error=str(error))
        return None


def _best_crawl(tx: Connection, fps: Iterable[bytes]) -> Crawl | None:
    for fp in fps:
        if known := url_queries.known_to(tx, fp, 1):
            return crawls.by_n(tx, known[0][0])
    newest = crawls.list_all(tx, limit=1)
    return crawls.by_n(tx, newest[0].n) if newest else None


def frontier_fields(seen: HostSnapshot | None) -> dict[str, Any] | None:
    """`frontier` in `explain --json`; docs/reference/output.md has the fields."""
    if seen is None:
        return None
    leased = seen.leased_ms is not None or seen.lease_expiry_ms is not None
    return {
        "at": timestamp(seen.now_ms),
        "queued_behind": seen.behind,
        "delayed_until": timestamp(seen.delayed_until_ms),
        "leased_since": timestamp(seen.leased_ms),
        "lease_ends": timestamp(seen.lease_expiry_ms),
        "owner": seen.owner if leased or seen.slots_out else None,
        "loaded": seen.loaded,
        "scan_pending": seen.scanning,
        "backlog": seen.backlog,
        "listed": seen.listed,
        "starved": seen.starved,
        "host_due": timestamp(seen.due_ms),
        "host_blocked_until": timestamp(seen.blocked_until_ms) if seen.blocked_until_ms > seen.now_ms else None,
        "host_slots_out": seen.slots_out,
        "host_delay_s": seen.delay_ms / 1000,
    }


def document(facts: UrlFacts, now_ms: int) -> dict[str, Any]:
    """The fields of `explain --json`."""
    row = facts.row
    return {
        "url": facts.url,
        "folded_from": facts.folded_from,
        "folded_by": list(facts.folded_by),
        "canonical": facts.page.canonical if facts.page else None,
        "crawl": facts.crawl.id if facts.crawl else None,
        "state": row.state if row else None,
        "reason": row.reason or None if row else facts.out_of_scope,
        "waits_for_rendering": row is not None and row.state == UrlState.OPEN and row.kind == Kind.BROWSER,
        "redirect_target": row.target if row else None,
        "referrer": facts.referrer,
        "attempts": row.attempts if row else None,
        "retry_at": timestamp(row.retry_ms) if row and row.retry_ms else None,
        "page": facts.page.id if facts.page else None,
        "response": facts.response.id if facts.response else None,
        "truncated": facts.page.truncated if facts.page else None,
        "document": asdict(facts.page.document) if facts.page and facts.page.document else None,
        "lastmod": row.lastmod if row else None,
        "priority": row.priority if row else None,
        "robots": {"allowed": facts.allowed, "rule": facts.rule},
        "host": asdict(facts.host),
        "incomplete_record": facts.incomplete,
        "fault": facts.silent[0] if facts.silent else None,
        "frontier": frontier_fields(facts.snapshot),
        "why": sentences(facts, now_ms),
    }


def of_host(
    tx: Connection, host: str, now_ms: int, seen: HostSnapshot | None = None, program: str = "curtsy", options: str = ""
) -> tuple[list[str], dict[str, Any]]:
    """Sentences and fields about a host."""
    state = hosts.get(tx, host)
    known = hosts.robots_of_hosts(tx, [host]).get(host, [])
    made = crawls.list_all(tx, limit=1000)
    theirs = queues.get(tx, [(crawl.n, host) for crawl in made])
    waiting = [(crawl, theirs[crawl.n, host]) for crawl in made if (crawl.n, host) in theirs]
    if state is None and not waiting:
        return [f"No crawl has seen the host {host}."], {
            "host": None,
            "fault": None,
            "queues": [],
            "robots": [],
            "frontier": None,
        }
    silent = queues.faults(tx, host).get(host)
    said = about_silence(host, silent) + (about_host(state, now_ms, program, options) if state else [])
    said += next_slot(seen)
    needed, plain = hosts.rendering(tx, [host])[host]
    if needed:
        directly = ", so the next ones go straight to a browser" if goes_directly(needed, plain) else ""
        said.append(f"Of its last {needed + plain} checked pages, {needed} needed a browser{directly}.")
    said += [f"robots.txt of {where}: {verdict}, fetched {timestamp(at_ms)}." for where, at_ms, _, verdict in known]
    for crawl, queue in waiting:
        state_text = f"{queue.state}{f' ({queue.reason})' if queue.reason else ''}"
        said.append(f"Crawl {crawl.id} ({crawl.state}): its queue is {state_text}; {queue.added:,} URLs were added.")
    fields = [
        {"crawl": crawl.id, "state": queue.state, "reason": queue.reason or None, "urls": queue.added}
        for crawl, queue in waiting
    ]
    return said, {
        "host": asdict(state) if state else None,
        "fault": silent[0] if silent else None,
        "queues": fields,
        "robots": [{"origin": where, "fetched_at": timestamp(at), "verdict": v} for where, at, _, v in known],
        "frontier": _of_host_only(frontier_fields(seen)),
    }


def _of_host_only(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    return fields and {name: value for name, value in fields.items() if name == "at" or name.startswith("host_")}


def target(text: str, unit: str) -> tuple[str | None, str]:
    """Return (URL or None, host) for a text that is a URL or a bare host."""
    if "://" in text:
        url = normalise(text)
        return url, host_key(url, unit) if url else ""
    url = normalise(f"https://{text}")
    if url is None:
        return None, ""
    return (url if "/" in text else None), host_key(url, unit)
