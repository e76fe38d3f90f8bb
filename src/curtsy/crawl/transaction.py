"""Step 3 of the commit: one database transaction stores a group of results.

It writes crawls with `max_pages`, hosts, queues, urls, pages, requests, failures, outbox, then other crawls: always in
this order, and every multi-row write sorted by key, so that commits of two processes do not deadlock. For a result
whose row did not change, only the request is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from curtsy.core.model import SUBRESOURCE, BodyRef, Failure, Kind, NewUrl, Page, Request, UrlState
from curtsy.core.outcome import Action
from curtsy.core.settings import Settings
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.host_updates import HostUpdates, HostWriter
from curtsy.crawl.results import Result, Returned
from curtsy.store import crawls, failures, hosts, outbox, pages, queues, rates, requests, urls

_STATES = {Action.DONE: UrlState.DONE, Action.SKIP: UrlState.SKIPPED, Action.DEAD: UrlState.FAILED}
Key = tuple[int, bytes]
QueueKey = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a group, each once."""

    #: may be new, in order of appearance
    fresh: Mapping[Key, NewUrl] = field(default_factory=dict)
    #: the filter says that their rows are in the store
    known: Sequence[NewUrl] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What the transaction stored. The frontier is updated next."""

    now_ms: int
    hosts: HostUpdates
    #: new rows: key -> seq
    inserted: Mapping[Key, int]
    #: rows that are in the store now, inserted or found there
    stored: Sequence[NewUrl]
    #: links that the filter knew already
    known: Sequence[NewUrl]
    #: links over the limit of URLs per host: no rows, and not checked again in this process
    refused: Sequence[NewUrl]
    #: fences whose page counted against max_pages
    used: frozenset[int]
    #: fences whose page was over max_pages: they have spent what they were granted, too
    surplus: frozenset[int]
    #: pages stored
    pages: int
    #: URLs settled by result: done, skipped or failed
    settled: Mapping[str, int]
    #: queues whose host is dead for the crawl: their rows are not listed
    dead: frozenset[QueueKey]
    #: crawl -> its version, where members joined
    versions: Mapping[int, int]
    #: (crawl, origin) whose sitemaps are rows now
    offered: frozenset[tuple[int, str]]


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


class _Inserted(NamedTuple):
    seqs: Mapping[Key, int]
    stored: Sequence[NewUrl]
    refused: Sequence[NewUrl]


class _Budget(NamedTuple):
    """What a group spends of max_pages, by fence."""

    surplus: frozenset[int] = frozenset()
    #: spent before: this transaction was carried out already, and its answer was lost
    counted: frozenset[int] = frozenset()


class Transaction:
    """Writes groups. Run it through `store.run`: it is harmless when repeated."""

    def __init__(self, settings: Settings, contexts: Mapping[int, CrawlContext], failing: Mapping[str, int]) -> None:
        self._settings = settings
        self._contexts = contexts
        self._hosts = HostWriter(settings, failing)

    def __call__(
        self, tx: Any, group: Sequence[Returned], links: Links,
        bodies: Mapping[int, Body], now_ms: int,
    ) -> Written:  # fmt: skip
        left = self._lock_budgets(tx, group)
        host_updates = self._hosts.write(tx, group, opening := self._queues_of(links), now_ms)
        opened = queues.open_queues(tx, [(*queue, 0) for queue in opening]) if opening else {}
        newest = _newest(group)
        budget = _spend(tx, newest, left) if left else _Budget()
        surplus = budget.surplus
        sitemap_entries = [
            urls.SitemapEntry(d.result.lease.crawl, fp, *one) for d in newest.values() for fp, one in d.result.listings
        ]
        if sitemap_entries:
            # All rows of this transaction in one order: a lock must not wait for one that waits for ours.
            urls.lock(tx, sorted({*newest, *((row.crawl, row.fp) for row in listed)}))
        changed = urls.settle(tx, [_settle(d.result, surplus, now_ms) for d in newest.values()], now_ms)
        changed_rows = [newest[key] for key in newest if key in changed]
        effective = [d.result for d in changed_rows]
        self._note_rendering(tx, effective)
        fresh = _effective_links(group, effective, links)
        inserted = self._insert_links(tx, fresh, opened, _found_on(effective, fresh), now_ms)
        urls.note_listed(tx, listed)
        stored = [d for d in changed_rows if d.result.page is not None and d.result.lease.fence not in surplus]
        # The body of a page that could not be read is stored with its dead letter; it does not count as a page.
        kept = [d for d in stored if d.result.decision.action is not Action.DEAD]
        fences = frozenset(d.result.lease.fence for d in stored)
        placed = {fence: _placed(bodies, fence, fences) for fence in fences}
        rows = [self._page(d, placed[d.result.lease.fence]) for d in stored]
        pages.insert(tx, rows, _others((d.result for d in stored), placed))
        requests.insert(tx, _requests(group))
        failures.insert(tx, [self._failure(d, now_ms) for d in effective if d.decision.action is Action.DEAD])
        outbox.put(tx, self._extractions(kept, now_ms))
        versions = self._write_counts(tx, effective, kept, surplus, inserted.seqs)
        rates.add(tx, _done(effective, kept, surplus), now_ms)
        return Written(
            now_ms=now_ms, hosts=host_updates, inserted=inserted.seqs, stored=inserted.stored, known=links.known,
            refused=inserted.refused, surplus=surplus, pages=len(kept), settled=_by_state(effective, surplus),
            used=frozenset(d.result.lease.fence for d in kept) | budget.counted,
            dead=frozenset(key for key, queue in opened.items() if queue.state == "dead"),
            versions=versions,
            offered=frozenset((d.lease.crawl, d.sitemaps_of) for d in effective if d.sitemaps_of is not None),
        )  # fmt: skip

    def _extractions(self, kept: Sequence[Returned], now_ms: int) -> list[outbox.Put]:
        """Pages of crawls with a schema enter the first stage; a site does when it has no open URL."""
        rows = [(d.result, self._contexts[d.result.lease.crawl].crawl) for d in kept]
        return [
            outbox.Put("extract", crawl.n, d.fp.hex(), now_ms, {"url": d.lease.entry.url}, crawl.request_id)
            for d, crawl in rows
            if crawl.schema is not None and crawl.per != "site"
        ]

    def _note_rendering(self, tx: Any, effective: Sequence[Result]) -> None:
        """Rows that wait for a browser from now on, and the counts of their hosts, whose rows are locked already."""
        changed = [
            (d.lease.crawl, d.fp, d.retry.kind.value)
            for d in effective
            if d.retry is not None and d.retry.kind is not d.lease.entry.kind
        ]
        if changed:
            urls.change_kinds(tx, changed)
        counts: dict[str, tuple[int, int]] = {}
        for result in effective:
            if result.needed_browser is not None:
                needed, plain = counts.get(result.lease.host, (0, 0))
                counts[result.lease.host] = (needed + result.needed_browser, plain + (not result.needed_browser))
        if counts:
            hosts.learn_rendering(tx, counts)

    def _lock_budgets(self, tx: Any, group: Sequence[Returned]) -> dict[int, int]:
        """Pages left of the crawls in the group that have max_pages. Locks their rows."""
        numbers = {d.result.lease.crawl for d in group if d.result.page is not None or d.result.member is not None}
        limited = {n for n in numbers if self._contexts[n].crawl.max_pages is not None}
        if not limited:
            return {}
        return {n: (most or 0) - pages_ for n, (most, pages_) in crawls.lock_budgets(tx, limited).items()}

    def _queues_of(self, links: Links) -> list[tuple[int, str, str]]:
        """(crawl, host, lane) of every queue that gets links."""
        wanted = {(link.crawl, link.host) for link in links.fresh.values()}
        return [(n, host, self._contexts[n].crawl.lane.value) for n, host in wanted]

    def _insert_links(
        self, tx: Any, fresh: Mapping[Key, NewUrl], opened: Mapping[QueueKey, queues.Queue],
        found_on: Mapping[Key, bytes], now_ms: int,
    ) -> _Inserted:  # fmt: skip
        most = self._settings.max_urls_per_host
        room = {key: most - queue.added for key, queue in opened.items()}
        rows: dict[Key, NewUrl] = {}
        refused: list[NewUrl] = []
        for key, link in fresh.items():
            queue = (link.crawl, link.host)
            room[queue] -= 1
            if room[queue] < 0:
                refused.append(link)
            else:
                rows[key] = link
        if not rows:
            return _Inserted({}, (), refused)
        stored = list(rows.values())
        seqs = urls.insert(tx, stored, now_ms, found_on)
        added: dict[QueueKey, int] = {}
        for key in seqs:
            queue = (key[0], rows[key].host)
            added[queue] = added.get(queue, 0) + 1
        queues.count_added(tx, added)
        return _Inserted(seqs, stored, refused)

    def _page(self, returned: Returned, body: Body) -> Page:
        result = returned.result
        outcome, lease, facts = result.outcome, result.lease, result.page
        assert outcome is not None
        assert facts is not None
        rendered = lease.entry.kind is Kind.BROWSER
        return Page(
            id=pages.page_id(lease.crawl, result.fp), crawl=lease.crawl, fp=result.fp, fence=lease.fence,
            url=lease.entry.url, host=lease.host, status=outcome.status,
            fetched_ms=returned.ended_ms, depth=lease.entry.depth,
            content_type=outcome.header("content-type"), charset=facts.charset, title=facts.title, sha256=body.sha256,
            size=len(outcome.body),
            # They belong to the response, not to the rendered document: a later request must not name them.
            etag=None if rendered else outcome.header("etag"),
            last_modified=None if rendered else outcome.header("last-modified"),
            canonical=facts.canonical, language=facts.language, truncated=facts.truncated,
            document=facts.document,
            unchanged=body.unchanged, body=body.ref,
            same_as=body.same_as, request_id=self._contexts[lease.crawl].crawl.request_id,
        )  # fmt: skip

    def _failure(self, result: Result, now_ms: int) -> Failure:
        lease, outcome = result.lease, result.outcome
        return Failure(
            id=f"{lease.fence:x}", crawl=lease.crawl, fp=result.fp, url=lease.entry.url, host=lease.host,
            cause=result.decision.reason, detail=outcome.detail if outcome is not None else "",
            status=outcome.status if outcome is not None else 0, attempts=lease.entry.attempts + 1, fence=lease.fence,
            at_ms=now_ms, request_id=self._contexts[lease.crawl].crawl.request_id,
        )  # fmt: skip

    def _write_counts(
        self, tx: Any, effective: Sequence[Result], kept: Sequence[Returned], surplus: frozenset[int],
        inserted: Iterable[Key],
    ) -> dict[int, int]:  # fmt: skip
        """Pages, members and counts of crawls. Returns the versions of crawls whose members joined."""
        counts: dict[tuple[int, str, str], int] = {}
        for result in effective:
            state, reason = _state_of(result, surplus)
            if state is not UrlState.OPEN:
                key = (result.lease.crawl, state.value, reason)
                counts[key] = counts.get(key, 0) + 1
        for crawl, _ in inserted:
            counts[crawl, "open", ""] = counts.get((crawl, "open", ""), 0) + 1
        taken: dict[int, int] = {}
        for returned in kept:
            crawl = returned.result.lease.crawl
            taken[crawl] = taken.get(crawl, 0) + 1
        joined: dict[int, set[str]] = {}
        for result in effective:
            if result.member is not None:
                joined.setdefault(result.lease.crawl, set()).add(result.member)
        if joined:
            crawls.lock(tx, {*taken, *joined})
        crawls.add_pages(tx, taken)
        versions = {n: crawls.extend_members(tx, n, joined[n]) for n in sorted(joined)}
        crawls.add_counts(tx, counts)
        return versions


def _by_state(effective: Sequence[Result], surplus: frozenset[int]) -> dict[str, int]:
    states = Counter(_state_of(result, surplus)[0] for result in effective)
    return {state.value: n for state, n in states.items() if state is not UrlState.OPEN}


def _done(effective: Sequence[Result], kept: Sequence[Returned], surplus: frozenset[int]) -> dict[int, rates.Done]:
    """crawl -> pages stored and URLs settled."""
    done: dict[int, rates.Done] = {}
    for returned in kept:
        some = done.get(returned.result.lease.crawl, rates.Done(0, 0))
        done[returned.result.lease.crawl] = some._replace(pages=some.pages + 1)
    for result in effective:
        if _state_of(result, surplus)[0] is not UrlState.OPEN:
            some = done.get(result.lease.crawl, rates.Done(0, 0))
            done[result.lease.crawl] = some._replace(urls=some.urls + 1)
    return done


def _effective_links(group: Sequence[Returned], effective: Sequence[Result], links: Links) -> Mapping[Key, NewUrl]:
    """Links of results whose rows changed. The links of another result are found by the lease that replaced it."""
    if len(effective) == sum(1 for d in group if d.result.fp):
        return links.fresh
    found = {(link.crawl, link.fp) for result in effective for link in result.links}
    return {key: link for key, link in links.fresh.items() if key in found}


def _found_on(effective: Sequence[Result], fresh: Mapping[Key, NewUrl]) -> dict[Key, bytes]:
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


def _newest(group: Sequence[Returned]) -> dict[Key, Returned]:
    """Of two results for one row in a group the later lease's counts."""
    newest: dict[Key, Returned] = {}
    for returned in group:
        result = returned.result
        key = (result.lease.crawl, result.fp)
        if result.fp and (key not in newest or newest[key].result.lease.fence < result.lease.fence):
            newest[key] = returned
    return newest


def _spend(tx: Any, newest: Mapping[Key, Returned], left: dict[int, int]) -> _Budget:
    """Finds the fences whose page is over max_pages. A result whose row will not change spends nothing."""
    rows = urls.select_locked(tx, newest)
    counted: set[int] = set()
    surplus: set[int] = set()
    for key, returned in newest.items():
        result = returned.result
        n, fence, row = result.lease.crawl, result.lease.fence, rows.get(key)
        if result.page is None or result.decision.action is Action.DEAD or n not in left or row is None:
            continue
        if row.state == UrlState.OPEN and row.fence < fence:
            left[n] -= 1
            if left[n] < 0:
                surplus.add(fence)
        elif row.state != UrlState.OPEN and row.fence == fence:
            (surplus if row.reason == "budget" else counted).add(fence)
    return _Budget(frozenset(surplus), frozenset(counted))


def _placed(bodies: Mapping[int, Body], fence: int, kept: frozenset[int]) -> Body:
    """A body that refers to one of this group whose page is not kept takes over its place in the segment."""
    body = bodies[fence]
    if body.first is None or body.first in kept:
        return body
    return body._replace(ref=bodies[body.first].ref, same_as=None)


def _others(kept: Iterable[Result], placed: Mapping[int, Body]) -> set[Key]:
    """Pages outside this group whose bodies its pages refer to."""
    found: set[Key] = set()
    for result in kept:
        body = placed[result.lease.fence]
        if body.unchanged and result.previous is not None:
            found.add((result.previous.crawl, result.previous.fp))
        if body.same_as is not None and body.first is None:
            found.add(pages.key_of(body.same_as))
    return found


def _state_of(result: Result, surplus: frozenset[int]) -> tuple[UrlState, str]:
    if result.lease.fence in surplus:
        return UrlState.SKIPPED, "budget"
    if result.retry is not None:
        return UrlState.OPEN, result.decision.reason
    return _STATES[result.decision.action], result.decision.reason


def _settle(result: Result, surplus: frozenset[int], now_ms: int) -> urls.Settle:
    lease, retry = result.lease, result.retry
    state, reason = _state_of(result, surplus)
    if retry is not None and state is UrlState.OPEN:
        retry_ms = now_ms + result.decision.delay_ms
        return urls.Settle(
            lease.crawl, result.fp, lease.fence, state, reason, retry.attempts, retry_ms, retry.chain
        )  # fmt: skip
    attempts = lease.entry.attempts + int(result.decision.counts)
    target = result.decision.location
    return urls.Settle(lease.crawl, result.fp, lease.fence, state, reason, attempts, None, lease.entry.chain, target)


def _requests(group: Sequence[Returned]) -> list[Request]:
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
