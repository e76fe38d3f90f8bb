"""Sentences about a URL or a host."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from curtsy.core.document_facts import PROBLEMS, DocumentFacts
from curtsy.core.model import Crawl, CrawlState, HostState, Kind, UrlState
from curtsy.core.times import timestamp
from curtsy.frontier.inspect import HostSnapshot
from curtsy.rules.urls import Scope, origin

if TYPE_CHECKING:
    from curtsy.control.explain import UrlFacts
    from curtsy.store import queues, urls

#: `urls.reason` -> its meaning
MEANINGS = {
    "sitemap": "it is a sitemap; its URLs were added",
    "no_sitemap": "robots.txt names no sitemap, and /sitemap.xml has no sitemap",
    "gone": "the site says that it does not exist (404 or 410)",
    "redirect": "it redirects to another URL",
    "type": "its content type is not in keep_types, so the body was not fetched",
    "document_type": "it is a document of a kind that is not in document_types, so the body was not fetched",
    "not_modified": "it has not changed since the last crawl",
    "robots": "robots.txt disallows it",
    "noindex": "the page asks not to be indexed; its links were followed",
    "too_large": "its body exceeds max_body_mb",
    "document_too_large": "it is a document larger than max_document_mb",
    "redirect_loop": "its redirects form a loop",
    "too_many_redirects": "its redirect chain is longer than max_redirects",
    "bad_redirect": "it redirects to something that is not an http or https URL",
    "forbidden_address": "its IP address is not public; --allow-private CIDR allows it",
    "budget": "the crawl reached max_pages",
    "denied": "its host is on the deny list; `curtsy hosts unblock` removes it",
    "cancelled": "the crawl was canceled",
    "refused": "the site refuses access (401, 403 or 451); it is not retried",
    "no_such_host": "the host name does not exist in DNS; check its spelling",
    "dns_failed": "the DNS servers do not answer, or their answer is unusable",
    "connect_failed": "the connection was refused, or the host is unreachable",
    "tls_failed": "its certificate is not trusted, or the TLS handshake failed. To trust a certificate authority of "
    "your own, set ca_file or the variable SSL_CERT_FILE to a PEM file. To trust those of your system, name its list, "
    "such as /etc/ssl/certs/ca-certificates.crt",
    "timeout": "it took longer than fetch_timeout_s",
    "connection_lost": "the connection was closed before the response was complete",
    "browser_failed": "the response arrived, but no browser could show it: it crashed, hung, or did not start",
    "robots_unreachable": "robots.txt of the host could not be fetched, so no page may be fetched",
    "host_unreachable": "the host no longer answers",
    "parse_timeout": "reading it took longer than parse_timeout_s; its body is stored",
    "no_room": "documents that were fetched before it use document_memory_mb; it is tried again when they are stored",
    "kills_worker": "the process that fetched it crashed twice while it was fetching nothing else",
}


#: rule of the setting `fold` -> what it says about a URL
FOLDS = {
    "escapes": "it escapes characters that need no escape, or writes escapes in lower case",
    "sessions": "it contains a session id",
    "tracking": "it has tracking_parameters",
    "order": "its parameters are in another order",
    "index": "it names the default document of its folder",
    "empty_query": "its query is empty",
}


def sentences(facts: UrlFacts, now_ms: int) -> list[str]:
    """Say where the URL is and why it is not done, most important first."""
    said = [*_about_row(facts, now_ms), *_about_robots(facts), *_about_requests(facts)]
    if facts.row is not None and facts.row.state == UrlState.OPEN:
        its_host = about_host(facts.host, now_ms, facts.program, facts.options)
        silence = about_silence(facts.host.host, facts.silent, with_meaning=not _is_dead(facts))
        said[1:1] = [*silence, *_about_snapshot(facts.snapshot), *_about_crawl(facts), *its_host]
    return _about_folding(facts) + said + _about_response(facts) + _about_record(facts) + _about_sitemap(facts)


def _about_response(facts: UrlFacts) -> list[str]:
    """How to see a redirect or an error."""
    if facts.response is None or facts.crawl is None:
        return []
    show = f"{facts.program} show {facts.response.id} --headers{facts.options}"
    return [f"Its response with status {facts.response.status} is stored. Show it with: {show}"]


def _about_record(facts: UrlFacts) -> list[str]:
    """What a language model's failure left out."""
    if facts.incomplete is None or facts.crawl is None:
        return []
    failure = facts.incomplete
    lacking = f" It lacks {', '.join(failure['fields'])}." if failure["fields"] else ""
    return [
        f"Its record {failure['record']} is incomplete: the language model did not answer ({failure['cause']}: "
        f"{failure['detail']}).{lacking} Complete it with: {facts.program} failures replay --crawl {facts.crawl.id} "
        f"--stage {failure['stage']}{facts.options}"
    ]


def _about_sitemap(facts: UrlFacts) -> list[str]:
    if facts.row is None or (facts.row.lastmod is None and facts.row.priority is None):
        return []
    changed = f"last changed {facts.row.lastmod}" if facts.row.lastmod else ""
    rank = f"priority {facts.row.priority:g}" if facts.row.priority is not None else ""
    return [f"A sitemap says about it: {', '.join(filter(None, (changed, rank)))}."]


def _about_folding(facts: UrlFacts) -> list[str]:
    """The URL that the URL of the query was folded into, and what the site says about it."""
    if facts.folded_from is None:
        return []
    rules = "; ".join(f"{name}: {FOLDS[name]}" for name in facts.folded_by)
    said = [f"It was folded into {facts.url} ({rules}). The setting fold names the rules. The rest concerns that URL."]
    canonical = facts.page.canonical if facts.page else None
    if canonical == facts.url:
        said.append("That page names itself as its canonical URL, which confirms it.")
    elif canonical == facts.folded_from:
        said.append("But that page names the unfolded URL as its canonical URL.")
    return said


def _about_row(facts: UrlFacts, now_ms: int) -> list[str]:
    if facts.crawl is None:
        return ["There are no crawls yet."]
    if facts.row is None:
        return _about_unknown(facts)
    row = facts.row
    meaning = meaning_of(row.reason, row.host)
    why = f" {row.reason!r}{f': {meaning}' if meaning else ''}" if row.reason else ""
    if row.state == UrlState.OPEN:
        return _about_open(facts, row, now_ms)
    if row.state == UrlState.FAILED:
        detail = f" ({facts.failure.detail})" if facts.failure and facts.failure.detail else ""
        return [
            f"It is a dead letter{why}{detail}, after {row.attempts} attempts."
            + (f" Its body is stored as page {facts.page.id}." if facts.page else ""),
            f"Retry it with: {facts.program} failures replay --crawl {facts.crawl.id} "
            f"--cause {row.reason}{facts.options}",
        ]
    kept = f" Its page is {facts.page.id}, status {facts.page.status}." if facts.page else ""
    if facts.page and facts.page.canonical not in (None, facts.url, facts.folded_from):
        kept += f" It names {facts.page.canonical} as its canonical URL."
    if facts.page and facts.page.document is not None:
        kept += about_document(facts.page.document)
    elif facts.page and facts.page.truncated:
        kept += " It is truncated: it exceeds the limits of the HTML parser, which did not read the rest."
    decided = ", ".join(filter(None, (row.reason, f"decided at {timestamp(row.settled_ms)}")))
    said = [f"It is {row.state}{f': {meaning}' if meaning else ''} ({decided}).{kept}"]
    return said + _about_target(facts) + _about_referrer(facts)


def _about_referrer(facts: UrlFacts) -> list[str]:
    return [] if facts.referrer is None else [f"It was found on {facts.referrer}."]


def _about_target(facts: UrlFacts) -> list[str]:
    """Where a redirect leads, and why the crawl did not follow it."""
    if facts.crawl is None or facts.row is None or facts.row.target is None:
        return []
    target = facts.row.target
    if facts.target_known:
        explain = f"{facts.program} explain {target} --crawl {facts.crawl.id}{facts.options}"
        return [f"It redirects to {target}, which is a URL of the crawl: {explain}"]
    if facts.target_out_of_scope:
        why = out_of_scope(facts.crawl, target, facts.target_out_of_scope)
        return [f"It redirects to {target}, which was not followed: {why}."]
    return [f"It redirects to {target}, which is not a URL of the crawl."]


def out_of_scope(crawl: Crawl, url: str, reason: str) -> str:
    """Which rule keeps a URL out of a crawl, and which option changes it."""
    if reason == "scope":
        known = sorted(crawl.members)
        named = ", ".join(known[:3]) + (f" and {len(known) - 3:,} more" if len(known) > 3 else "")
        what = "these hosts" if crawl.scope == "host" else "these domains"
        wider = "--scope domain, --scope any" if crawl.scope == "host" else "--scope any"
        return f"the scope {crawl.scope!r} has only {what}: {named}. {wider}, or another seed, would add it"
    if reason == "exclude":
        pattern = next(
            one for one in crawl.exclude if Scope.of(replace(crawl, exclude=(one,))).admits(url, 0) == reason
        )
        return f"the pattern {pattern!r} of --exclude matches it"
    if reason == "include":
        return f"no pattern of --include matches it: {', '.join(map(repr, crawl.include))}"
    if reason == "depth":
        return f"it is more than {crawl.max_depth} links away from a seed (--max-depth)"
    return f"{_LIMITS[reason]}; it may be a trap of endless URLs"


_LIMITS = {
    "length": "it is longer than max_url_length",
    "segments": "its path has more parts than max_path_segments",
    "repeated": "its path repeats parts more often than max_repeated_segments",
}


def meaning_of(reason: str, host: str) -> str | None:
    """What a reason means; a failure of DNS names the host."""
    meaning = MEANINGS.get(reason)
    if reason in ("no_such_host", "dns_failed") and meaning is not None:
        return f"{host}: {meaning}"
    return meaning


def about_document(facts: DocumentFacts) -> str:
    """What kind of document it is, and what was not read of it."""
    said = f" It is a document ({facts.kind}{f', {facts.pages:,} pages' if facts.pages > 1 else ''})."
    if facts.problem:
        meaning = PROBLEMS.get(facts.problem)
        said += (
            f" It was not read completely, {facts.problem!r}{f': {meaning}' if meaning else ''}. Its body is stored."
        )
    return said


def _about_unknown(facts: UrlFacts) -> list[str]:
    assert facts.crawl is not None
    said = f"Crawl {facts.crawl.id} does not know this URL: "
    if facts.host.denied:
        return [f"{said}{MEANINGS['denied']}."]
    if facts.out_of_scope:
        return [f"{said}{out_of_scope(facts.crawl, facts.url, facts.out_of_scope)}."]
    return [f"{said}it is not a seed, and no fetched page links to it."]


def _about_open(facts: UrlFacts, row: urls.UrlRow, now_ms: int) -> list[str]:
    if facts.queue is not None and facts.queue.state == "dead":
        meaning = meaning_of(facts.queue.reason, facts.queue.host) or facts.queue.reason
        return [
            f"It counts as a dead letter {facts.queue.reason!r}: {meaning}.",
            *_about_outage(facts.queue),
            f"Reopen it with: {facts.program} failures replay{facts.options}",
        ]
    tried = f", after {row.attempts} attempts" if row.attempts else ""
    lost = f", its worker crashed {row.crashes} times" if row.crashes else ""
    if row.retry_ms and row.retry_ms > now_ms:
        return [f"It is open{tried}{lost}. The next attempt is in {_span(row.retry_ms - now_ms)}."]
    if row.kind == Kind.BROWSER:
        return [
            f"It is open{tried}{lost}. It waits for rendering: for a slot of {facts.host.host} in a browser.",
            f"In a fleet, a worker with a browser serves it: {facts.program} worker --queues render{facts.options}",
        ]
    return [f"It is open{tried}{lost}. It waits for a slot of {facts.host.host}."]


def _about_outage(queue: queues.Queue) -> list[str]:
    """What the first failed request of a dead host met; a certificate comes with the ways to trust it."""
    if not queue.detail:
        return []
    is_tls = queue.reason != "tls_failed" and (queue.detail.startswith("SSL") or " failed: SSL" in queue.detail)
    hint = f" That means: {MEANINGS['tls_failed']}." if is_tls else ""
    return [f"{queue.host} failed: {queue.detail.rstrip('.')}.{hint}"]


def _is_dead(facts: UrlFacts) -> bool:
    return facts.queue is not None and facts.queue.state == "dead"


def _about_crawl(facts: UrlFacts) -> list[str]:
    crawl = facts.crawl
    if _is_dead(facts) and (crawl is None or crawl.state is not CrawlState.RUNNING):
        return []  # the dead letter says it
    if crawl is None or crawl.state is CrawlState.RUNNING:
        resume = f"{facts.program} crawl --resume {crawl.id}{facts.options}" if crawl else ""
        return [f"If it does not proceed, no process is crawling. Start one with: {resume}"] if crawl else []
    if crawl.state is CrawlState.PAUSED:
        return [f"The crawl is paused. Resume it with: {facts.program} crawl --resume {crawl.id}{facts.options}"]
    if crawl.state is CrawlState.LOADING:
        return ["The crawl is still loading its seeds."]
    return [f"The crawl is {crawl.state}, so it counts as skipped ({crawl.reason or crawl.state})."]


def _about_snapshot(seen: HostSnapshot | None) -> list[str]:
    """Where the URL is in the frontier, and when its host is due."""
    if seen is None:
        return []
    said = [_place(seen)]
    if seen.starved:
        said.append("Its host is skipped for now: the requests in flight may use up the crawl's max_pages.")
    return [*said, *next_slot(seen)]


def _place(seen: HostSnapshot) -> str:
    if seen.leased_ms is not None or seen.lease_expiry_ms is not None:
        since = f" since {timestamp(seen.leased_ms)}" if seen.leased_ms else ""
        return f"A process holds it{since}{f' ({seen.owner})' if seen.owner else ''}: it is being fetched or stored."
    if seen.delayed_until_ms is not None:
        return f"The frontier retries it in {_span(seen.delayed_until_ms - seen.now_ms)}."
    if seen.behind is not None:
        others = (
            "1 other URL of its queue precedes"
            if seen.behind == 1
            else f"{seen.behind:,} other URLs of its queue precede"
        )
        return f"In the frontier, {others} it."
    if not seen.loaded:
        return "Its queue is not loaded into the frontier: it waits in the store until there is room."
    if seen.scanning:
        return "Its queue is being loaded from the store."
    return f"It waits in the store; {seen.listed:,} URLs of its queue are listed before it."


def next_slot(seen: HostSnapshot | None) -> list[str]:
    """When a host is due, according to the frontier."""
    if seen is None:
        return []
    said = []
    if seen.slots_out:
        said.append(f"Requests to its host in flight: {seen.slots_out}.")
    if seen.blocked_until_ms > seen.now_ms:
        said.append(f"The frontier blocks its host for another {_span(seen.blocked_until_ms - seen.now_ms)}.")
    elif seen.due_ms is not None:
        wait_ms = seen.due_ms - seen.now_ms
        said.append(f"Its host is due in {_span(wait_ms)}." if wait_ms > 0 else "Its host is due now.")
    return said


def about_host(host: HostState, now_ms: int, program: str = "curtsy", options: str = "") -> list[str]:
    """Whether a host is requested, and why not."""
    said = []
    if host.denied:
        said.append(f"{host.host} is on the deny list. Remove it with: {program} hosts unblock {host.host}{options}")
    if host.blocked_until_ms > now_ms:
        said.append(
            f"{host.host} is blocked for another {_span(host.blocked_until_ms - now_ms)}: it asked for a pause, or "
            f"failed. End the block with: {program} hosts unblock {host.host}{options}"
        )
    elif host.next_ms > now_ms:
        said.append(f"{host.host} is due again in {_span(host.next_ms - now_ms)}.")
    if host.failures:
        said.append(f"Its last {host.failures} requests failed.")
    if host.slow:
        said.append("It is slow or failing, so it is in the lane `slow`.")
    if delay_ms := max(host.operator_delay_ms or 0, host.robots_delay_ms or 0, host.adaptive_ms or 0):
        said.append(f"Its own delay is {delay_ms / 1000:g} s (the longest of operator, robots.txt and latency).")
    return said


def about_silence(host: str, silent: tuple[str, int] | None, with_meaning: bool = True) -> list[str]:
    if silent is None:
        return []
    fault, since_ms = silent
    meaning = MEANINGS.get(fault) if with_meaning else None
    return [f"{host} has not answered since {timestamp(since_ms)}: {fault}{f' ({meaning})' if meaning else ''}."]


def _about_robots(facts: UrlFacts) -> list[str]:
    if facts.robots is None:
        why = "could not be fetched" if _is_dead(facts) else "has not been fetched yet"
        return [f"robots.txt of {origin(facts.url)} {why}."]
    if meaning := MEANINGS.get(facts.robots.verdict):
        return [f"robots.txt of {facts.robots.origin} is not requested: {meaning}."]
    if facts.robots.verdict == "forbid":
        return [f"robots.txt of {facts.robots.origin} cannot be fetched, so no page may be fetched there."]
    verdict = "allows" if facts.allowed else "disallows"
    return [f"robots.txt of {facts.robots.origin} {verdict} it{f' by the line {facts.rule!r}' if facts.rule else ''}."]


def _about_requests(facts: UrlFacts) -> list[str]:
    return [
        f"Requested {timestamp(request.start_ms)}: {request.fault or request.status}, "
        f"{request.end_ms - request.start_ms} ms{' (presumed)' if request.nature == 'presumed' else ''}."
        for request in facts.requests
    ]


def _span(ms: int) -> str:
    seconds = ms / 1000
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
