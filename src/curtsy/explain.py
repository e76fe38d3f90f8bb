"""Why is this URL not done? What store and frontier know of a URL or a host, in sentences."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from curtsy.embedded import Embedded
from curtsy.errors import EpochLost, FrontierUnavailable
from curtsy.frontier.look import Sight, sight
from curtsy.model import Crawl, CrawlState, Failure, HostState, Kind, Page, Request, RobotsState, UrlState
from curtsy.observe import log
from curtsy.rendering import goes_directly
from curtsy.robots import Robots
from curtsy.store import crawls, failures, hosts, meta, pages, queues, requests, urls
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
    "dns_failed": "the DNS servers do not answer, or not usably",
    "connect_failed": "no connection: refused or unreachable",
    "tls_failed": "its certificate or its TLS does not hold",
    "timeout": "it took longer than fetch_timeout_s",
    "connection_lost": "the connection was closed before the response was complete",
    "browser_failed": "the response came, but no browser could show it: it crashed, hung, or does not start",
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
    #: the fault since which the host is silent, and that moment
    silent: tuple[str, int] | None = None
    #: what the frontier says; None: it was not asked, or is not there
    sight: Sight | None = None
    #: how commands that are named begin, and what they need again: --data-dir, --config
    program: str = "curtsy"
    options: str = ""


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
        silent=queues.faults(tx, host).get(host),
    )


def with_frontier(tx: Connection, facts: UrlFacts, settings: Settings) -> UrlFacts:
    """With what the frontier knows of a URL that is still open, if its server runs. None is started for it."""
    if facts.crawl is None or facts.row is None or facts.row.state != UrlState.OPEN:
        return facts
    render = facts.row.kind == Kind.BROWSER
    return replace(facts, sight=see(tx, settings, facts.host.host, facts.crawl.n, facts.url, render=render))


def see(
    tx: Connection, settings: Settings, host: str, crawl: int | None = None, url: str | None = None,
    *, render: bool = False,
) -> Sight | None:  # fmt: skip
    """What the frontier knows of a host or URL; None if its server does not run or holds nothing of this store."""
    server = settings.frontier_url
    if server is None:
        running = Embedded.running(settings.data_dir)
        if running is None:
            return None
        server = running.url
    # As the crawls have it, whatever this command was told.
    shards = int(meta.get(tx, "shards") or settings.shards or 1)
    epochs = [int(meta.get(tx, f"epoch:{shard}") or 0) for shard in range(shards)]
    try:
        given = settings.model_copy(update={"shards": shards})
        return asyncio.run(sight(server, given, epochs, host, crawl, url, render=render))
    except (EpochLost, FrontierUnavailable) as error:
        log("frontier_not_asked", level="warning", error=str(error))
        return None


def _best_crawl(tx: Connection, fp: bytes) -> Crawl | None:
    if known := urls.crawls_of(tx, fp):
        return crawls.by_n(tx, known[0])
    newest = crawls.list_all(tx, limit=1)
    return crawls.by_n(tx, newest[0].n) if newest else None


def sentences(facts: UrlFacts, now_ms: int) -> list[str]:
    """Where the URL is and why it is not done, most telling first."""
    said = [*_about_row(facts, now_ms), *_about_robots(facts), *_about_requests(facts)]
    if facts.row is not None and facts.row.state == UrlState.OPEN:
        about_host = _about_host(facts.host, now_ms, facts.program, facts.options)
        silence = _about_silence(facts.host.host, facts.silent)
        said[1:1] = [*silence, *_about_sight(facts.sight), *_about_crawl(facts), *about_host]
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
            f"Try it again with: {facts.program} failures replay --crawl {facts.crawl.id} "
            f"--cause {row.reason}{facts.options}",
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
            f"It counts as a dead letter {facts.queue.reason!r}: {meaning}. "
            f"`{facts.program} failures replay{facts.options}` opens it again."
        ]
    tried = f", after {row.attempts} attempts" if row.attempts else ""
    lost = f", its worker vanished {row.crashes} times" if row.crashes else ""
    if row.retry_ms and row.retry_ms > now_ms:
        return [f"It is open{tried}{lost}, and will be tried again in {_span(row.retry_ms - now_ms)}."]
    if row.kind == Kind.BROWSER:
        said = f"It is open{tried}{lost}, and waits for rendering: for a turn of {facts.host.host} in a browser."
        return [
            said,
            f"In a fleet a worker with a browser serves it: {facts.program} worker --queues render{facts.options}",
        ]
    return [f"It is open{tried}{lost}, and waits for its turn on {facts.host.host}."]


def _about_crawl(facts: UrlFacts) -> list[str]:
    crawl = facts.crawl
    if crawl is None or crawl.state is CrawlState.RUNNING:
        go_on = f"{facts.program} crawl --resume {crawl.id}{facts.options}" if crawl else ""
        return [f"If nothing moves, no process is crawling: {go_on}"] if crawl else []
    if crawl.state is CrawlState.PAUSED:
        return [f"The crawl is paused. Let it go on with: {facts.program} crawl --resume {crawl.id}{facts.options}"]
    if crawl.state is CrawlState.LOADING:
        return ["The crawl is still loading its seeds."]
    return [f"The crawl is {crawl.state}, so it counts as skipped ({crawl.reason or crawl.state})."]


def _about_sight(seen: Sight | None) -> list[str]:
    """Where the URL stands in the frontier, and when its host has its turn."""
    if seen is None:
        return []
    said = [_place(seen)]
    if seen.starved:
        said.append("Its host is passed over for now: the requests under way may use up the crawl's max_pages.")
    return [*said, *_turn(seen)]


def _place(seen: Sight) -> str:
    if seen.leased_ms is not None or seen.lease_expiry_ms is not None:
        since = f" since {_when(seen.leased_ms)}" if seen.leased_ms else ""
        return f"A process has it{since}{f' ({seen.owner})' if seen.owner else ''}: it is being fetched or stored."
    if seen.delayed_until_ms is not None:
        return f"The frontier tries it again in {_span(seen.delayed_until_ms - seen.now_ms)}."
    if seen.behind is not None:
        return f"In the frontier it stands in its queue, behind {seen.behind:,} others."
    if not seen.loaded:
        return "Its queue is not loaded into the frontier: it waits in the store until there is room."
    if seen.scanning:
        return "Its queue is being read from the store."
    return f"It waits in the store; {seen.listed:,} URLs of its queue are listed before it."


def _turn(seen: Sight) -> list[str]:
    said = []
    if seen.slots_out:
        said.append(f"{seen.slots_out} of its host's requests {'is' if seen.slots_out == 1 else 'are'} under way.")
    if seen.blocked_until_ms > seen.now_ms:
        said.append(f"The frontier does not ask its host for another {_span(seen.blocked_until_ms - seen.now_ms)}.")
    elif seen.due_ms is not None:
        wait_ms = seen.due_ms - seen.now_ms
        said.append(f"Its host is due in {_span(wait_ms)}." if wait_ms > 0 else "Its host is due now.")
    return said


def frontier_fields(seen: Sight | None) -> dict[str, Any] | None:
    """`frontier` in `explain --json`; docs/output.md has the fields."""
    if seen is None:
        return None
    leased = seen.leased_ms is not None or seen.lease_expiry_ms is not None
    return {
        "at": _when(seen.now_ms),
        "queued_behind": seen.behind,
        "delayed_until": _when(seen.delayed_until_ms),
        "leased_since": _when(seen.leased_ms),
        "lease_ends": _when(seen.lease_expiry_ms),
        "owner": seen.owner if leased or seen.slots_out else None,
        "loaded": seen.loaded,
        "scan_pending": seen.scanning,
        "backlog": seen.backlog,
        "listed": seen.listed,
        "starved": seen.starved,
        "host_due": _when(seen.due_ms),
        "host_blocked_until": _when(seen.blocked_until_ms) if seen.blocked_until_ms > seen.now_ms else None,
        "host_slots_out": seen.slots_out,
        "host_delay_s": seen.delay_ms / 1000,
    }


def _about_host(host: HostState, now_ms: int, program: str, options: str) -> list[str]:
    said = []
    if host.denied:
        said.append(f"{host.host} is on the deny list; `{program} hosts unblock {host.host}{options}` takes it off.")
    if host.blocked_until_ms > now_ms:
        said.append(
            f"{host.host} is not asked for another {_span(host.blocked_until_ms - now_ms)}: it told us to wait, or "
            f"failed; `{program} hosts unblock {host.host}{options}` ends that."
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


def about_host(host: HostState, now_ms: int, seen: Sight | None) -> list[str]:
    """Whether a host is asked, and why not."""
    return [*_about_host(host, now_ms, "curtsy", ""), *(_turn(seen) if seen else ())]


def _about_silence(host: str, silent: tuple[str, int] | None) -> list[str]:
    if silent is None:
        return []
    fault, since_ms = silent
    meaning = MEANINGS.get(fault)
    return [f"{host} has not answered since {_when(since_ms)}: {fault}{f' ({meaning})' if meaning else ''}."]


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


def document(facts: UrlFacts, now_ms: int) -> dict[str, Any]:
    """The fields of `explain --json`."""
    row = facts.row
    return {
        "url": facts.url,
        "crawl": facts.crawl.id if facts.crawl else None,
        "state": row.state if row else None,
        "reason": row.reason or None if row else facts.out_of_scope,
        "waits_for_rendering": row is not None and row.state == UrlState.OPEN and row.kind == Kind.BROWSER,
        "attempts": row.attempts if row else None,
        "retry_at": _when(row.retry_ms) if row and row.retry_ms else None,
        "page": facts.page.id if facts.page else None,
        "robots": {"allowed": facts.allowed, "rule": facts.rule},
        "host": asdict(facts.host),
        "fault": facts.silent[0] if facts.silent else None,
        "frontier": frontier_fields(facts.sight),
        "why": sentences(facts, now_ms),
    }


def of_host(
    tx: Connection, host: str, now_ms: int, seen: Sight | None = None, program: str = "curtsy", options: str = ""
) -> tuple[list[str], dict[str, Any]]:
    """Sentences and fields about a host."""
    state = hosts.get(tx, host)
    known = hosts.robots_of_hosts(tx, [host]).get(host, [])
    waiting = [
        (crawl, queue)
        for crawl in crawls.list_all(tx, limit=1000)
        if (queue := queues.get(tx, [(crawl.n, host)]).get((crawl.n, host))) is not None
    ]
    if state is None and not waiting:
        return [f"Nothing is known of {host}."], {
            "host": None,
            "fault": None,
            "queues": [],
            "robots": [],
            "frontier": None,
        }
    silent = queues.faults(tx, host).get(host)
    said = _about_silence(host, silent) + (_about_host(state, now_ms, program, options) if state else [])
    said += _turn(seen) if seen else []
    needed, plain = hosts.rendering(tx, [host])[host]
    if needed:
        directly = ": the next ones are shown in one directly" if goes_directly(needed, plain) else ""
        said.append(f"Of its last {needed + plain} pages that were looked at, {needed} needed a browser{directly}.")
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
        "fault": silent[0] if silent else None,
        "queues": fields,
        "robots": [{"origin": where, "fetched_at": _when(at), "verdict": v} for where, at, _, v in known],
        "frontier": _of_host_only(frontier_fields(seen)),
    }


def _of_host_only(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    return fields and {name: value for name, value in fields.items() if name == "at" or name.startswith("host_")}


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
