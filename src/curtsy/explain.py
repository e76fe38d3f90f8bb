"""Why is this URL not done? What store and frontier know of a URL or a host, in sentences."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from curtsy.model import Crawl, CrawlState, Failure, HostState, Page, Request, RobotsState, UrlState
from curtsy.robots import Robots
from curtsy.store import crawls, failures, hosts, pages, queues, requests, urls
from curtsy.urls import Scope, fingerprint, host_key, normalise, origin

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from curtsy.settings import Settings

#: what the words in `urls.reason` mean, for people
MEANINGS = {
    "gone": "the site says that it does not exist (404 or 410)",
    "redirect": "it redirects to a URL that the crawl knows",
    "type": "its content type is not among keep_types, so the body was not fetched",
    "not_modified": "it has not changed since the last crawl",
    "robots": "robots.txt forbids it",
    "noindex": "the page asks not to be kept; its links were followed",
    "too_large": "its body is over max_body_mb",
    "redirect_loop": "its redirects lead back to themselves",
    "too_many_redirects": "its chain of redirects is longer than max_redirects",
    "bad_redirect": "it redirects to something that is no http or https URL",
    "forbidden_address": "its address is not a public one; --allow-private CIDR allows it",
    "budget": "the crawl had its max_pages",
    "denied": "its host is on the deny list; `curtsy hosts unblock` takes it off",
    "cancelled": "the crawl was cancelled",
    "refused": "the site refuses (401, 403 or 451); we do not argue",
    "no_such_host": "the name does not exist in DNS",
    "robots_unreachable": "robots.txt could not be fetched for longer than host_patience_s, so nothing may be asked",
    "host_unreachable": "the host has not answered for longer than host_patience_s",
    "kills_worker": "the process that fetched it died twice while doing nothing else",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFacts:
    """Everything known of one URL in one crawl; `row` is None where the crawl does not know the URL."""

    url: str
    crawl: Crawl | None
    row: urls.UrlRow | None
    queue: queues.Queue | None
    host: HostState
    robots: RobotsState | None
    #: the line of robots.txt that decides
    rule: str | None
    allowed: bool | None
    page: Page | None
    failure: Failure | None
    requests: tuple[Request, ...]
    #: why the crawl's scope leaves it out; None: it does not
    out_of_scope: str | None


def of_url(tx: Connection, url: str, settings: Settings, crawl: Crawl | None) -> UrlFacts:
    """Gather the facts of a normalised URL; without a crawl, of the newest that knows it, or the newest of all."""
    fp = fingerprint(url)
    host = host_key(url, settings.politeness_unit)
    crawl = crawl or _best_crawl(tx, fp)
    row = urls.get(tx, crawl.n, fp) if crawl else None
    state = hosts.get_robots(tx, [origin(url)]).get(origin(url))
    rules = Robots.parse(state.body) if state and state.verdict == "rules" else None
    dead = [f for f in failures.find(tx, crawl=crawl.n, host=host, replayed=True) if f.fp == fp] if crawl else []
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
        failure=dead[-1] if dead else None,
        requests=tuple(requests.of_url(tx, host, url)),
        out_of_scope=Scope.of(crawl).admits(url, 0) if crawl and row is None else None,
    )


def _best_crawl(tx: Connection, fp: bytes) -> Crawl | None:
    if known := urls.crawls_of(tx, fp):
        return crawls.by_n(tx, known[0])
    newest = crawls.list_all(tx, limit=1)
    return crawls.by_n(tx, newest[0].n) if newest else None


def sentences(facts: UrlFacts, now_ms: int) -> list[str]:
    """Where the URL is and why it is not done, most telling first."""
    said = [*_about_row(facts, now_ms), *_about_robots(facts), *_about_requests(facts)]
    if facts.row is not None and facts.row.state == UrlState.OPEN:
        said[1:1] = [*_about_crawl(facts), *_about_host(facts.host, now_ms)]
    return said


def _about_row(facts: UrlFacts, now_ms: int) -> list[str]:
    if facts.crawl is None:
        return ["No crawl has been made here yet."]
    if facts.row is None:
        return _about_unknown(facts)
    row = facts.row
    meaning = MEANINGS.get(row.reason)
    why = f" {row.reason!r}{f': {meaning}' if meaning else ''}" if row.reason else ""
    if row.state == UrlState.OPEN:
        return _about_open(facts, row, now_ms)
    if row.state == UrlState.FAILED:
        told = f" ({facts.failure.detail})" if facts.failure and facts.failure.detail else ""
        return [
            f"It is a dead letter{why}{told}, after {row.attempts} attempts.",
            f"Try it again with: curtsy failures replay --crawl {facts.crawl.id} --cause {row.reason}",
        ]
    kept = f" Its page is {facts.page.id}, status {facts.page.status}." if facts.page else ""
    return [f"It is {row.state}{why} since {_when(row.settled_ms)}.{kept}"]


def _about_unknown(facts: UrlFacts) -> list[str]:
    assert facts.crawl is not None
    said = f"Crawl {facts.crawl.id} does not know this URL: "
    if facts.host.denied:
        return [f"{said}{MEANINGS['denied']}."]
    if facts.out_of_scope:
        return [f"{said}it is out of its scope ({facts.out_of_scope})."]
    return [f"{said}no page that it fetched has linked to it, and it is no seed."]


def _about_open(facts: UrlFacts, row: urls.UrlRow, now_ms: int) -> list[str]:
    if facts.queue is not None and facts.queue.state == "dead":
        meaning = MEANINGS.get(facts.queue.reason, facts.queue.reason)
        return [
            f"It counts as a dead letter {facts.queue.reason!r}: {meaning}. `curtsy failures replay` opens it again."
        ]
    tried = f", after {row.attempts} attempts" if row.attempts else ""
    lost = f", its worker vanished {row.crashes} times" if row.crashes else ""
    if row.retry_ms and row.retry_ms > now_ms:
        return [f"It is open{tried}{lost}, and will be tried again in {_span(row.retry_ms - now_ms)}."]
    return [f"It is open{tried}{lost}, and waits for its turn on {facts.host.host}."]


def _about_crawl(facts: UrlFacts) -> list[str]:
    crawl = facts.crawl
    if crawl is None or crawl.state is CrawlState.RUNNING:
        return ["If nothing moves, no process is crawling: curtsy crawl --resume " + crawl.id] if crawl else []
    if crawl.state is CrawlState.PAUSED:
        return [f"The crawl is paused. Let it go on with: curtsy resume {crawl.id}"]
    if crawl.state is CrawlState.LOADING:
        return ["The crawl is still loading its seeds."]
    return [f"The crawl is {crawl.state}, so it counts as skipped ({crawl.reason or crawl.state})."]


def _about_host(host: HostState, now_ms: int) -> list[str]:
    said = []
    if host.denied:
        said.append(f"{host.host} is on the deny list; `curtsy hosts unblock {host.host}` takes it off.")
    if host.blocked_until_ms > now_ms:
        said.append(
            f"{host.host} is not asked for another {_span(host.blocked_until_ms - now_ms)}: it told us to wait."
        )
    elif host.next_ms > now_ms:
        said.append(f"{host.host} may be asked again in {_span(host.next_ms - now_ms)}.")
    if host.failures:
        said.append(f"Its last {host.failures} requests failed.")
    if host.slow:
        said.append("It is slow or failing, so it is served in the lane `slow`.")
    if delay_ms := max(host.operator_delay_ms or 0, host.robots_delay_ms or 0, host.adaptive_ms or 0):
        said.append(f"Its own delay is {delay_ms / 1000:g} s (operator, robots.txt or its latency, whichever is most).")
    return said


def _about_robots(facts: UrlFacts) -> list[str]:
    if facts.robots is None:
        return [f"robots.txt of {origin(facts.url)} has not been fetched yet."]
    if meaning := MEANINGS.get(facts.robots.verdict):
        return [f"robots.txt of {facts.robots.origin} is not asked for: {meaning}."]
    if facts.robots.verdict == "forbid":
        return [f"robots.txt of {facts.robots.origin} cannot be fetched, so nothing may be asked there."]
    verdict = "allows" if facts.allowed else "forbids"
    return [f"robots.txt of {facts.robots.origin} {verdict} it{f' by the line {facts.rule!r}' if facts.rule else ''}."]


def _about_requests(facts: UrlFacts) -> list[str]:
    return [
        f"Asked {_when(request.start_ms)}: {request.fault or request.status}, {request.end_ms - request.start_ms} ms"
        f"{' (presumed)' if request.nature == 'presumed' else ''}."
        for request in facts.requests
    ]


def document(facts: UrlFacts, now_ms: int, frontier: dict[str, Any] | None = None) -> dict[str, Any]:
    """The fields of `explain --json`."""
    row = facts.row
    return {
        "url": facts.url,
        "crawl": facts.crawl.id if facts.crawl else None,
        "state": row.state if row else None,
        "reason": row.reason or None if row else facts.out_of_scope,
        "attempts": row.attempts if row else None,
        "retry_at": _when(row.retry_ms) if row and row.retry_ms else None,
        "page": facts.page.id if facts.page else None,
        "robots": {"allowed": facts.allowed, "rule": facts.rule},
        "host": asdict(facts.host),
        "frontier": frontier,
        "why": sentences(facts, now_ms),
    }


def of_host(tx: Connection, host: str, now_ms: int) -> tuple[list[str], dict[str, Any]]:
    """Sentences and fields about a host."""
    state = hosts.get(tx, host)
    known = hosts.robots_of_hosts(tx, [host]).get(host, [])
    waiting = [
        (crawl, queue)
        for crawl in crawls.list_all(tx, limit=1000)
        if (queue := queues.get(tx, [(crawl.n, host)]).get((crawl.n, host))) is not None
    ]
    if state is None and not waiting:
        return [f"Nothing is known of {host}."], {"host": None, "queues": [], "robots": []}
    said = _about_host(state, now_ms) if state else []
    said += [f"robots.txt of {where}: {verdict}, fetched {_when(at_ms)}." for where, at_ms, _, verdict in known]
    for crawl, queue in waiting:
        word = f"{queue.state}{f' ({queue.reason})' if queue.reason else ''}"
        said.append(f"Crawl {crawl.id} ({crawl.state}): its queue is {word}, {queue.added:,} URLs were added.")
    fields = [
        {"crawl": crawl.id, "state": queue.state, "reason": queue.reason or None, "urls": queue.added}
        for crawl, queue in waiting
    ]
    return said, {
        "host": asdict(state) if state else None,
        "queues": fields,
        "robots": [{"origin": where, "fetched_at": _when(at), "verdict": v} for where, at, _, v in known],
    }


def target(text: str, unit: str) -> tuple[str | None, str]:
    """(URL or None, host) that somebody means by `text`: a URL, or a bare host."""
    if "://" in text:
        url = normalise(text)
        return url, host_key(url, unit) if url else ""
    url = normalise(f"https://{text}")
    if url is None:
        return None, ""
    return (url if "/" in text else None), host_key(url, unit)


def _when(at_ms: int | None) -> str | None:
    return None if not at_ms else datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _span(ms: int) -> str:
    seconds = ms / 1000
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
