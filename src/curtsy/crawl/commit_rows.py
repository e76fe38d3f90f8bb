"""The rows that a group of results becomes, prepared before the transaction that writes them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from curtsy.content.head import robots_tag
from curtsy.core.model import SUBRESOURCE, BodyRef, NewUrl, Page, Request, UrlState, hot_value
from curtsy.core.outcome import Action
from curtsy.crawl.results import Result, Returned
from curtsy.store import pages, rates, responses, urls

_STATES = {Action.DONE: UrlState.DONE, Action.SKIP: UrlState.SKIPPED, Action.DEAD: UrlState.FAILED}
NO_FENCES: frozenset[int] = frozenset()
Key = tuple[int, bytes]


@hot_value(kw_only=False)
class Links:
    """The links of a group, each once."""

    #: may be new, in order of appearance
    fresh: Mapping[Key, NewUrl] = field(default_factory=dict)
    #: the filter says that their rows are in the store
    known: Sequence[NewUrl] = ()


class Body(NamedTuple):
    """Where a page's body is stored."""

    sha256: str
    ref: BodyRef | None = None
    #: the page whose body it is
    same_as: str | None = None
    #: since the last crawl
    unchanged: bool = False
    #: the fence in this group whose body it is
    first: int | None = None


class Tally(NamedTuple):
    """What results count as."""

    #: (crawl, state, reason) -> settled URLs
    counts: Mapping[tuple[int, str, str], int]
    #: the same by state
    by_state: Mapping[str, int]
    #: crawl -> pages stored and URLs settled
    done: Mapping[int, rates.Done]


@hot_value()
class Brought:
    """What results bring whose rows changed."""

    results: Sequence[Result]
    #: links that may be new, and the first URL that named each
    fresh: Mapping[Key, NewUrl]
    found_on: Mapping[Key, bytes]
    #: their pages, and the other pages whose bodies these refer to
    pages: Sequence[Page]
    refers_to: set[Key]
    #: their redirects and errors
    responses: Sequence[responses.Response]
    #: those whose page counts
    kept: Sequence[Returned]
    tally: Tally


@hot_value()
class Plan:
    """A group as its transaction writes it."""

    group: Sequence[Returned]
    links: Links
    bodies: Mapping[int, Body]
    now_ms: int
    #: the newest result of each row
    newest: Mapping[Key, Returned]
    #: (crawl, host, lane) of the queues that get links
    opening: Sequence[tuple[int, str, str]]
    settles: Sequence[urls.Settle]
    requests: Sequence[Request]
    #: if every row changes
    expected: Brought


def effective_links(group: Sequence[Returned], effective: Sequence[Result], links: Links) -> Mapping[Key, NewUrl]:
    """Links of results whose rows changed. The links of another result are found by the lease that replaced it."""
    if len(effective) == sum(1 for d in group if d.result.fp):
        return links.fresh
    found = {(link.crawl, link.fp) for result in effective for link in result.links}
    return {key: link for key, link in links.fresh.items() if key in found}


def found_on(effective: Sequence[Result], fresh: Mapping[Key, NewUrl]) -> dict[Key, bytes]:
    """The first URL that named each new one. Most groups bring few new links, so the rest costs one lookup each."""
    wanted = {id(link): key for key, link in fresh.items()}
    named: dict[Key, bytes] = {}
    for result in effective:
        if len(named) == len(fresh):
            break
        for link in result.links:
            if (key := wanted.get(id(link))) is not None:
                named.setdefault(key, result.fp)
    return named


def tally(results: Sequence[Result], kept: Sequence[Returned], surplus: frozenset[int]) -> Tally:
    states = Counter([(result.lease.crawl, *state_of(result, surplus)) for result in results])
    counts = {
        (crawl, state.value, reason): n for (crawl, state, reason), n in states.items() if state is not UrlState.OPEN
    }
    by_state: dict[str, int] = {}
    settled: dict[int, int] = {}
    for (crawl, state, _), n in counts.items():
        by_state[state] = by_state.get(state, 0) + n
        settled[crawl] = settled.get(crawl, 0) + n
    stored = Counter([returned.result.lease.crawl for returned in kept])
    done = {crawl: rates.Done(stored[crawl], settled.get(crawl, 0)) for crawl in {*settled, *stored}}
    return Tally(counts, by_state, done)


def place(bodies: Mapping[int, Body], fence: int, kept: frozenset[int]) -> Body:
    """A body that refers to one of this group whose page is not kept takes over its place in the segment."""
    body = bodies[fence]
    if body.first is None or body.first in kept:
        return body
    return body._replace(ref=bodies[body.first].ref, same_as=None)


def other_pages(kept: Iterable[Result], placed: Mapping[int, Body]) -> set[Key]:
    """Pages outside this group whose bodies its pages refer to."""
    found: set[Key] = set()
    for result in kept:
        body = placed[result.lease.fence]
        if body.unchanged and result.previous is not None:
            found.add((result.previous.crawl, result.previous.fp))
        if body.same_as is not None and body.first is None:
            found.add(pages.key_of(body.same_as))
    return found


def is_other_response(result: Result, agent: str) -> bool:
    """A redirect or an error, which is stored although it is not a page.

    Not robots.txt, sitemaps that the site did not announce, 304, and responses that ask not to be indexed.
    """
    outcome = result.outcome
    if result.page is not None or outcome is None or outcome.status < 300 or outcome.started is None:
        return False
    if not result.fp or result.answered is not None or result.decision.reason == "no_sitemap":
        return False
    return not robots_tag(outcome.header_all("x-robots-tag"), agent)[0]


def responses_of(changed: Iterable[Returned], bodies: Mapping[int, Body]) -> list[responses.Response]:
    """The redirects and errors among these, where `_write_bodies` stored them."""
    found = []
    for returned in changed:
        result = returned.result
        lease, body = result.lease, bodies.get(result.lease.fence)
        if result.page is not None or body is None:
            continue
        assert result.outcome is not None
        assert body.ref is not None
        found.append(
            responses.Response(
                lease.fence, lease.crawl, result.fp, lease.host, result.outcome.status, returned.ended_ms, body.ref
            )
        )
    return found


def state_of(result: Result, surplus: frozenset[int]) -> tuple[UrlState, str]:
    if result.lease.fence in surplus:
        return UrlState.SKIPPED, "budget"
    if result.retry is not None:
        return UrlState.OPEN, result.decision.reason
    return _STATES[result.decision.action], result.decision.reason


def settle(result: Result, surplus: frozenset[int], now_ms: int) -> urls.Settle:
    lease, retry = result.lease, result.retry
    state, reason = state_of(result, surplus)
    if retry is not None and state is UrlState.OPEN:
        retry_ms = now_ms + result.decision.delay_ms
        return urls.Settle(
            lease.crawl, result.fp, lease.fence, state, reason, retry.attempts, retry_ms, retry.chain
        )  # fmt: skip
    attempts = lease.entry.attempts + int(result.decision.counts)
    target = result.decision.location
    return urls.Settle(lease.crawl, result.fp, lease.fence, state, reason, attempts, None, lease.entry.chain, target)


def requests_of(group: Sequence[Returned]) -> list[Request]:
    sent = [d for d in group if d.times is not None]
    rows = [_request(d) for d in sent]
    for returned in sent:
        if returned.result.outcome is not None and returned.result.outcome.subresources:
            rows += _subrequests(returned)
    return rows


def _request(returned: Returned) -> Request:
    result, times = returned.result, returned.times
    lease, outcome = result.lease, result.outcome
    assert outcome is not None
    assert times is not None
    return Request(
        fence=lease.fence, crawl=lease.crawl, host=lease.host, url=lease.entry.url, start_ms=times.start_ms,
        end_ms=times.end_ms, kind=lease.entry.kind.value, status=result.answered or outcome.status,
        fault=None if outcome.fault is None else outcome.fault.value, delay_ms=lease.delay_ms, per_host=lease.per_host,
    )  # fmt: skip


def _subrequests(returned: Returned) -> list[Request]:
    """What a visit loaded: rows of its fence with ordinals from 2. Ordinal 1 belongs to a slot that expired."""
    lease, outcome, times = returned.result.lease, returned.result.outcome, returned.times
    assert outcome is not None
    assert times is not None
    base_ms = times.start_ms - int((outcome.started or outcome.ended) * 1000)
    return [
        Request(
            fence=lease.fence, ordinal=2 + at, crawl=lease.crawl, host=one.host, url=one.url,
            start_ms=base_ms + int(one.started * 1000), end_ms=base_ms + int(one.ended * 1000), kind=SUBRESOURCE,
            status=one.status, per_host=lease.per_host,
        )
        for at, one in enumerate(outcome.subresources)
    ]  # fmt: skip
