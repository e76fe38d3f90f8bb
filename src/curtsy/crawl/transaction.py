"""Step 3 of the commit: one database transaction makes a group of results true.

Crawls that have `max_pages`, hosts, queues, urls, pages, requests, failures, outbox, other crawls: always in that
order, every multi-row write sorted by key. A result whose row did not change writes its request only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from curtsy.core.model import SUBRESOURCE, BodyRef, Entry, Failure, Kind, NewUrl, Page, Request, UrlState
from curtsy.core.outcome import Action
from curtsy.core.settings import Settings
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.host_updates import Lessons
from curtsy.crawl.results import Finished
from curtsy.frontier.messages import Rules
from curtsy.store import crawls, failures, hosts, outbox, pages, queues, requests, urls

_STATES = {Action.DONE: UrlState.DONE, Action.SKIP: UrlState.SKIPPED, Action.DEAD: UrlState.FAILED}
Key = tuple[int, bytes]


@dataclass(slots=True)
class Links:
    """The links of a group, each once."""

    #: may be new, in order of appearance
    fresh: dict[Key, NewUrl] = field(default_factory=dict)
    #: their rows stand in the store, by the filter
    known: list[NewUrl] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Written:
    """What the transaction made true; the frontier is told of it."""

    now_ms: int
    inserted: dict[Key, int] = field(default_factory=dict)
    #: rows that stand in the store now, inserted or found there
    stored: list[NewUrl] = field(default_factory=list)
    #: rows that the filter knew already
    known: list[NewUrl] = field(default_factory=list)
    #: over the limit of URLs per host: not rows, and not worth asking again in this process
    refused: list[NewUrl] = field(default_factory=list)
    #: fences whose page counted against max_pages, and those over it: both have spent what was granted
    used: set[int] = field(default_factory=set)
    surplus: set[int] = field(default_factory=set)
    #: queues whose host is dead for the crawl: their rows count by its reason and are not listed
    dead: set[tuple[int, str]] = field(default_factory=set)
    versions: dict[int, int] = field(default_factory=dict)
    rules: list[Rules] = field(default_factory=list)
    follows: list[tuple[int, str, int, Entry]] = field(default_factory=list)
    #: (crawl, origin) whose sitemaps are rows now
    offered: set[tuple[int, str]] = field(default_factory=set)
    #: hosts that answer again, and hosts that did not answer
    answered: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    #: queues whose host's name does not exist
    nameless: set[tuple[int, str]] = field(default_factory=set)


class Body(NamedTuple):
    """Where a page's body stands."""

    sha256: str
    ref: BodyRef | None = None
    #: the page whose body it is
    same_as: str | None = None
    #: since the last crawl
    unchanged: bool = False
    #: the fence in this group whose body it is
    first: int | None = None


class Transaction:
    """Writes groups. Run it through `store.run`: it is harmless when repeated."""

    def __init__(self, settings: Settings, contexts: Mapping[int, CrawlContext], silent: Mapping[str, int]) -> None:
        self._settings = settings
        self._contexts = contexts
        self._lessons = Lessons(settings, silent)

    def __call__(
        self, tx: Any, group: Sequence[Finished], links: Links,
        bodies: Mapping[int, Body], now_ms: int,
    ) -> Written:  # fmt: skip
        """Tables in one order, rows sorted by key: two processes' commits do not deadlock."""
        written = Written(now_ms=now_ms)
        left = self._lock_budgets(tx, group)
        self._lessons.write(tx, group, written, self._queues_of(links))
        opened = self._open_queues(tx, links)
        written.dead = {key for key, queue in opened.items() if queue.state == "dead"}
        newest = _newest(group)
        counted = _spend(tx, newest, left, written) if left else set()
        surplus = written.surplus
        changed = urls.settle(tx, [_settle(d, surplus, now_ms) for d in newest.values()], now_ms)
        effective = [newest[key] for key in newest if key in changed]
        self._note_rendering(tx, effective)
        self._insert_links(tx, self._effective_links(group, effective, links), opened, written)
        written.known = links.known
        written.offered = {(d.lease.crawl, d.offers) for d in effective if d.offers is not None}
        stored = [d for d in effective if d.page and d.lease.fence not in surplus]
        # The body of a page that could not be read is stored with its dead letter; it is no page that counts.
        kept = [d for d in stored if d.decision.action is not Action.DEAD]
        written.used = {d.lease.fence for d in kept}
        fences = {d.lease.fence for d in stored}
        standing = {d.lease.fence: _standing(bodies, d.lease.fence, fences) for d in stored}
        pages.insert(tx, [self._page(d, standing[d.lease.fence]) for d in stored], _others(stored, standing))
        written.used |= counted
        rows = [_request(d) for d in group if d.times is not None]
        for done in group:
            if done.times is not None and done.outcome is not None and done.outcome.subresources:
                rows += _subrequests(done)
        requests.insert(tx, rows)
        failures.insert(tx, [self._failure(d, now_ms) for d in effective if d.decision.action is Action.DEAD])
        outbox.put(tx, self._extractions(kept, now_ms))
        self._write_crawls(tx, effective, kept, surplus, written)
        return written

    def _extractions(self, kept: Sequence[Finished], now_ms: int) -> list[outbox.Put]:
        """Pages of crawls that name a schema go on to the first stage; a site goes on when it has no open URL."""
        rows = [(d, self._contexts[d.lease.crawl].crawl) for d in kept]
        return [
            outbox.Put("extract", crawl.n, d.fp.hex(), now_ms, {"url": d.lease.entry.url}, crawl.request_id)
            for d, crawl in rows
            if crawl.schema is not None and crawl.per != "site"
        ]

    def _note_rendering(self, tx: Any, effective: Sequence[Finished]) -> None:
        """Rows that wait for a browser from here on, and what was learnt of their hosts, whose rows are written already
        and held."""
        turned = [
            (d.lease.crawl, d.fp, d.retry.kind.value)
            for d in effective
            if d.retry is not None and d.retry.kind is not d.lease.entry.kind
        ]
        if turned:
            urls.change_kinds(tx, turned)
        learnt: dict[str, tuple[int, int]] = {}
        for done in effective:
            if done.needed_browser is not None:
                needed, plain = learnt.get(done.lease.host, (0, 0))
                learnt[done.lease.host] = (needed + done.needed_browser, plain + (not done.needed_browser))
        if learnt:
            hosts.learn_rendering(tx, learnt)

    def _lock_budgets(self, tx: Any, group: Sequence[Finished]) -> dict[int, int]:
        """Pages left of the crawls in the group that have max_pages, their rows locked."""
        limited = {
            d.lease.crawl
            for d in group
            if (d.page or d.member is not None) and self._contexts[d.lease.crawl].crawl.max_pages is not None
        }
        if not limited:
            return {}
        return {n: (most or 0) - pages_ for n, (most, pages_) in crawls.lock_budgets(tx, limited).items()}

    def _queues_of(self, links: Links) -> list[tuple[int, str, str]]:
        """(crawl, host, lane) of every queue that gets links."""
        wanted = {(link.crawl, link.host) for link in links.fresh.values()}
        lanes = {n: self._contexts[n].crawl.lane.value for n, _ in wanted}
        return [(n, host, lanes[n]) for n, host in wanted]

    def _open_queues(self, tx: Any, links: Links) -> dict[tuple[int, str], queues.Queue]:
        wanted = self._queues_of(links)
        return queues.open_queues(tx, [(*queue, 0) for queue in wanted]) if wanted else {}

    def _effective_links(
        self, group: Sequence[Finished], effective: Sequence[Finished], links: Links
    ) -> dict[Key, NewUrl]:
        """Of a result whose row did not change only the request is written: its links are another's to find."""
        if len(effective) == sum(1 for done in group if done.fp):
            return links.fresh
        found = {(link.crawl, link.fp) for done in effective for link in done.links}
        return {key: link for key, link in links.fresh.items() if key in found}

    def _insert_links(
        self, tx: Any, fresh: Mapping[Key, NewUrl], opened: Mapping[tuple[int, str], queues.Queue], written: Written
    ) -> None:
        most = self._settings.max_urls_per_host
        room = {key: most - queue.added for key, queue in opened.items()}
        rows: dict[Key, NewUrl] = {}
        for key, link in fresh.items():
            queue = (link.crawl, link.host)
            room[queue] -= 1
            if room[queue] < 0:
                written.refused.append(link)
            else:
                rows[key] = link
        if not rows:
            return
        written.inserted = urls.insert(tx, list(rows.values()), written.now_ms)
        written.stored = list(rows.values())
        added: dict[tuple[int, str], int] = {}
        for key in written.inserted:
            queue = (key[0], rows[key].host)
            added[queue] = added.get(queue, 0) + 1
        queues.count_added(tx, added)

    def _page(self, done: Finished, body: Body) -> Page:
        outcome, lease = done.outcome, done.lease
        assert outcome is not None
        rendered = lease.entry.kind is Kind.BROWSER
        return Page(
            id=pages.page_id(lease.crawl, done.fp), crawl=lease.crawl, fp=done.fp, fence=lease.fence,
            url=lease.entry.url, host=lease.host, status=outcome.status,
            fetched_ms=ended_ms(done), depth=lease.entry.depth,
            content_type=outcome.header("content-type"), charset=done.charset, title=done.title, sha256=body.sha256,
            size=len(outcome.body),
            # They belong to the response, not to what a browser made of it: a later request must not name them.
            etag=None if rendered else outcome.header("etag"),
            last_modified=None if rendered else outcome.header("last-modified"),
            canonical=done.canonical, language=done.language, truncated=done.truncated,
            unchanged=body.unchanged, body=body.ref,
            same_as=body.same_as, request_id=self._contexts[lease.crawl].crawl.request_id,
        )  # fmt: skip

    def _failure(self, done: Finished, now_ms: int) -> Failure:
        lease, outcome = done.lease, done.outcome
        return Failure(
            id=f"{lease.fence:x}", crawl=lease.crawl, fp=done.fp, url=lease.entry.url, host=lease.host,
            cause=done.decision.reason, detail=outcome.detail if outcome is not None else "",
            status=outcome.status if outcome is not None else 0, attempts=lease.entry.attempts + 1, fence=lease.fence,
            at_ms=now_ms, request_id=self._contexts[lease.crawl].crawl.request_id,
        )  # fmt: skip

    def _write_crawls(
        self, tx: Any, effective: Sequence[Finished], kept: Sequence[Finished], surplus: set[int], written: Written
    ) -> None:
        counts: dict[tuple[int, str, str], int] = {}
        for done in effective:
            state, reason = _state_of(done, surplus)
            if state is not UrlState.OPEN:
                key = (done.lease.crawl, state.value, reason)
                counts[key] = counts.get(key, 0) + 1
        for crawl, _ in written.inserted:
            counts[crawl, "open", ""] = counts.get((crawl, "open", ""), 0) + 1
        taken: dict[int, int] = {}
        for done in kept:
            taken[done.lease.crawl] = taken.get(done.lease.crawl, 0) + 1
        joined: dict[int, set[str]] = {}
        for done in effective:
            if done.member is not None:
                joined.setdefault(done.lease.crawl, set()).add(done.member)
        if joined:
            crawls.lock(tx, {*taken, *joined})
        crawls.add_pages(tx, taken)
        for n in sorted(joined):
            written.versions[n] = crawls.extend_members(tx, n, joined[n])
        crawls.add_counts(tx, counts)


def _newest(group: Sequence[Finished]) -> dict[Key, Finished]:
    """Of two results for one row in a group the later lease's counts."""
    newest: dict[Key, Finished] = {}
    for done in group:
        key = (done.lease.crawl, done.fp)
        if done.fp and (key not in newest or newest[key].lease.fence < done.lease.fence):
            newest[key] = done
    return newest


def _spend(tx: Any, newest: Mapping[Key, Finished], left: dict[int, int], written: Written) -> set[int]:
    """Finds the fences whose page is over max_pages. A result whose row will not change spends nothing.

    Answers the fences that spent a page already: this transaction was carried out before, and its answer was lost.
    """
    rows = urls.standing(tx, newest)
    counted: set[int] = set()
    for key, done in newest.items():
        n, fence, row = done.lease.crawl, done.lease.fence, rows.get(key)
        if not done.page or done.decision.action is Action.DEAD or n not in left or row is None:
            continue
        if row.state == UrlState.OPEN and row.fence < fence:
            left[n] -= 1
            if left[n] < 0:
                written.surplus.add(fence)
        elif row.state != UrlState.OPEN and row.fence == fence:
            (written.surplus if row.reason == "budget" else counted).add(fence)
    return counted


def ended_ms(done: Finished) -> int:
    return done.times.end_ms if done.times is not None else 0


def _standing(bodies: Mapping[int, Body], fence: int, kept: set[int]) -> Body:
    """A body that refers to one of this group whose page is not kept stands there itself."""
    body = bodies[fence]
    if body.first is None or body.first in kept:
        return body
    return body._replace(ref=bodies[body.first].ref, same_as=None)


def _others(kept: Sequence[Finished], standing: Mapping[int, Body]) -> set[Key]:
    """Pages outside this group whose bodies its pages refer to."""
    found: set[Key] = set()
    for done in kept:
        body = standing[done.lease.fence]
        if body.unchanged and done.previous is not None:
            found.add((done.previous.crawl, done.previous.fp))
        if body.same_as is not None and body.first is None:
            found.add(pages.key_of(body.same_as))
    return found


def _state_of(done: Finished, surplus: set[int]) -> tuple[UrlState, str]:
    if done.lease.fence in surplus:
        return UrlState.SKIPPED, "budget"
    if done.retry is not None:
        return UrlState.OPEN, done.decision.reason
    return _STATES[done.decision.action], done.decision.reason


def _settle(done: Finished, surplus: set[int], now_ms: int) -> urls.Settle:
    lease = done.lease
    state, reason = _state_of(done, surplus)
    if done.retry is not None and state is UrlState.OPEN:
        retry = done.retry
        return urls.Settle(
            lease.crawl,
            done.fp,
            lease.fence,
            state,
            reason,
            retry.attempts,
            now_ms + done.decision.delay_ms,
            retry.chain,
        )
    attempts = lease.entry.attempts + int(done.decision.counts)
    return urls.Settle(lease.crawl, done.fp, lease.fence, state, reason, attempts, None, lease.entry.chain)


def _request(done: Finished) -> Request:
    lease, outcome, times = done.lease, done.outcome, done.times
    assert outcome is not None
    assert times is not None
    return Request(
        fence=lease.fence, crawl=lease.crawl, host=lease.host, url=lease.entry.url, start_ms=times.start_ms,
        end_ms=times.end_ms, kind=lease.entry.kind.value, status=done.answered or outcome.status,
        fault=None if outcome.fault is None else outcome.fault.value, delay_ms=lease.delay_ms, per_host=lease.per_host,
    )  # fmt: skip


def _subrequests(done: Finished) -> list[Request]:
    """What a visit loaded: rows of its fence, told apart by their ordinals. 1 is that of a slot that expired."""
    lease, outcome, times = done.lease, done.outcome, done.times
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
