"""Step 3 of the commit: one database transaction stores a group of results.

It writes crawls with `max_pages`, hosts, queues, urls, pages, responses, requests, failures, outbox, then other crawls:
always in this order, and every multi-row write sorted by key, so that commits of two processes do not deadlock. For a
result whose row did not change, only the request is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from curtsy.core.model import Failure, Kind, NewUrl, Page, UrlState, hot_value
from curtsy.core.outcome import Action
from curtsy.core.settings import Settings
from curtsy.crawl import commit_rows as rows
from curtsy.crawl.commit_rows import Body, Brought, Key, Links, Plan
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.host_updates import HostUpdates, HostWriter
from curtsy.crawl.results import Result, Returned
from curtsy.store import crawls, failures, hosts, outbox, pages, queues, rates, requests, responses, urls

QueueKey = tuple[int, str]


@hot_value()
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

    def plan(self, group: Sequence[Returned], links: Links, bodies: Mapping[int, Body], now_ms: int) -> Plan:
        """Everything that can be prepared before the transaction: SQLite has one writer, which should be short."""
        newest = _newest(group)
        return Plan(
            group=group, links=links, bodies=bodies, now_ms=now_ms, newest=newest, opening=self._queues_of(links),
            settles=[rows.settle(d.result, rows.NO_FENCES, now_ms) for d in newest.values()],
            requests=rows.requests_of(group),
            # Nearly always every row changes: the rest is prepared for that case.
            expected=self._brought(list(newest.values()), group, links, bodies, rows.NO_FENCES),
        )  # fmt: skip

    def __call__(self, tx: Any, plan: Plan) -> Written:
        group, links, now_ms, newest = plan.group, plan.links, plan.now_ms, plan.newest
        left = self._lock_budgets(tx, group)
        host_updates = self._hosts.write(tx, group, plan.opening, now_ms)
        opened = queues.open_queues(tx, [(*queue, 0) for queue in plan.opening]) if plan.opening else {}
        budget = _spend(tx, newest, left) if left else _Budget()
        surplus = budget.surplus
        sitemap_entries = [
            urls.SitemapEntry(d.result.lease.crawl, fp, *one) for d in newest.values() for fp, one in d.result.listings
        ]
        if sitemap_entries:
            # All rows of this transaction in one order: a lock must not wait for one that waits for ours.
            urls.lock(tx, sorted({*newest, *((row.crawl, row.fp) for row in sitemap_entries)}))
        settles = [rows.settle(d.result, surplus, now_ms) for d in newest.values()] if surplus else plan.settles
        changed = urls.settle(tx, settles, now_ms)
        brought = plan.expected
        if surplus or len(changed) < len(newest):
            changed_rows = [newest[key] for key in newest if key in changed]
            brought = self._brought(changed_rows, group, links, plan.bodies, surplus)
        self._note_rendering(tx, brought.results)
        inserted = self._insert_links(tx, brought.fresh, opened, brought.found_on, now_ms)
        urls.note_sitemap_entries(tx, sitemap_entries)
        pages.insert(tx, brought.pages, brought.refers_to)
        responses.insert(tx, brought.responses)
        requests.insert(tx, plan.requests)
        failures.insert(tx, [self._failure(d, now_ms) for d in brought.results if d.decision.action is Action.DEAD])
        outbox.put(tx, self._extractions(brought.kept, now_ms))
        versions = self._write_counts(tx, brought, inserted.seqs)
        rates.add(tx, brought.tally.done, now_ms)
        return Written(
            now_ms=now_ms, hosts=host_updates, inserted=inserted.seqs, stored=inserted.stored, known=links.known,
            refused=inserted.refused, surplus=surplus, pages=len(brought.kept), settled=brought.tally.by_state,
            used=frozenset(d.result.lease.fence for d in brought.kept) | budget.counted,
            dead=frozenset(key for key, queue in opened.items() if queue.state == "dead"),
            versions=versions,
            offered=frozenset((d.lease.crawl, d.sitemaps_of) for d in brought.results if d.sitemaps_of is not None),
        )  # fmt: skip

    def _brought(
        self, changed: Sequence[Returned], group: Sequence[Returned], links: Links, bodies: Mapping[int, Body],
        surplus: frozenset[int],
    ) -> Brought:  # fmt: skip
        """What the results bring whose rows changed."""
        results = [d.result for d in changed]
        fresh = rows.effective_links(group, results, links)
        stored = [d for d in changed if d.result.page is not None and d.result.lease.fence not in surplus]
        # The body of a page that could not be read is stored with its dead letter; it does not count as a page.
        kept = [d for d in stored if d.result.decision.action is not Action.DEAD]
        fences = frozenset(d.result.lease.fence for d in stored)
        placed = {fence: rows.place(bodies, fence, fences) for fence in fences}
        return Brought(
            results=results, fresh=fresh, found_on=rows.found_on(results, fresh), kept=kept,
            pages=[self._page(d, placed[d.result.lease.fence]) for d in stored],
            refers_to=rows.other_pages((d.result for d in stored), placed),
            responses=rows.responses_of(changed, bodies),
            tally=rows.tally(results, kept, surplus),
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

    def _write_counts(self, tx: Any, brought: Brought, inserted: Mapping[Key, int]) -> dict[int, int]:
        """Pages, members and counts of crawls. Returns the versions of crawls whose members joined."""
        tally = brought.tally
        counts = dict(tally.counts)
        for crawl, n in Counter(crawl for crawl, _ in inserted).items():
            counts[crawl, "open", ""] = n
        taken = {crawl: done.pages for crawl, done in tally.done.items() if done.pages}
        joined: dict[int, set[str]] = {}
        for result in brought.results:
            if result.member is not None:
                joined.setdefault(result.lease.crawl, set()).add(result.member)
        if joined:
            crawls.lock(tx, {*taken, *joined})
        crawls.add_pages(tx, taken)
        versions = {n: crawls.extend_members(tx, n, joined[n]) for n in sorted(joined)}
        crawls.add_counts(tx, counts)
        return versions


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
