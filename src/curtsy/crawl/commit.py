"""The commit: the only way in which fetched work becomes durable.

    1  which links may be new?      reads the filter `seen`, does not write to it
    2  bodies to segments           durable before any row refers to them
    3  one database transaction     the database decides: only rows that were open change
    4  the frontier                 receives new rows, settles leases; only now fingerprints enter the filters

At worst, a crash repeats a fetch; docs/durability.md lists what happens at each point.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import chain as concatenate
from typing import Any

from curtsy.core import clock, metrics
from curtsy.core.failpoints import point
from curtsy.core.model import Entry, Kind, NewUrl, Page
from curtsy.core.observe import count
from curtsy.core.outcome import BEGINNING_BYTES, Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.core.threads import in_thread
from curtsy.crawl.commit_rows import Body, Links, is_other_response
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.maintenance import Maintenance
from curtsy.crawl.results import Result, Returned
from curtsy.crawl.transaction import Transaction, Written
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import Settled, epoch_of
from curtsy.rules.urls import short
from curtsy.services.epochs import handle_push_reply, put_back, send_crawls
from curtsy.services.scans import Scans
from curtsy.store import pages, schedules, warc
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore
from curtsy.store.warc import Packed, WarcItem

#: larger bodies are hashed and compressed in a thread
_LARGE_BYTES = 128 * 1024
#: number of smaller bodies per iteration of the event loop
_AT_A_TIME = 8
#: why the body of a redirect or an error is incomplete -> WARC-Truncated
_CUT = {Fault.TOO_LARGE: "length", Fault.TIMEOUT: "time", Fault.RESET: "disconnect"}
#: earlier crawls of a schedule that are searched for the same body
_EARLIER_CRAWLS = 32


class Committer:
    """Commits groups one after another."""

    def __init__(
        self, frontier: Frontier, store: Store, segments: SegmentStore, settings: Settings,
        contexts: Mapping[int, CrawlContext], maintenance: Maintenance, scans: Scans,
        persist: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]],
    ) -> None:  # fmt: skip
        self._frontier = frontier
        self._store = store
        self._segments = segments
        self._settings = settings
        self._contexts = contexts
        self._maintenance, self._scans = maintenance, scans
        self._transaction = Transaction(settings, contexts, maintenance.failing)
        #: repeats a step until its server answers again, and rebuilds a lost frontier
        self._persist = persist

    async def commit(self, group: Sequence[Returned]) -> None:
        """Commit a group. It is durable and known to the frontier on return."""
        point("commit.begin")
        began = time.monotonic()
        links = await self._persist(lambda: self._may_be_new(group))
        epochs = [shard.epoch for shard in self._frontier.shards]
        now_ms = _latest(group) or clock.now_ms()
        written: Written | None = None
        gone: set[tuple[int, bytes]] = set()
        # Repeated if a page that a body refers to was deleted meanwhile: the bodies are written without the reference.
        while written is None:
            bodies = await self._persist(partial(self._write_bodies, group, gone))
            point("commit.segments")
            try:
                written = await self._persist(partial(in_thread, self._write_rows, group, links, bodies, now_ms))
            except pages.BodiesGone as deleted:
                gone = gone | deleted.keys
        point("commit.stored")
        self._maintenance.note_answers(written.hosts.answered, written.hosts.failing, written.now_ms)
        await self._update_frontier(group, written, epochs)
        count("commits")
        count("commit_pages", len(group))
        count("commit_ms", int((time.monotonic() - began) * 1000))
        metrics.observe("curtsy_commit_seconds", time.monotonic() - began)
        metrics.inc("curtsy_pages_total", written.pages)
        for state, n in written.settled.items():
            metrics.inc("curtsy_urls_total", n, result=state)

    # Step 1: which links may be new?

    async def _may_be_new(self, group: Sequence[Returned]) -> Links:
        by_crawl: dict[int, dict[int, NewUrl]] = {}
        for link in dict.fromkeys(concatenate.from_iterable(done.result.links for done in group)):
            by_crawl.setdefault(link.crawl, {}).setdefault(short(link.fp), link)
        fresh: dict[tuple[int, bytes], NewUrl] = {}
        known: list[NewUrl] = []
        for crawl, found in by_crawl.items():
            shorts = list(found)
            for position in await self._frontier.unseen(crawl, shorts):
                link = found.pop(shorts[position])
                fresh[crawl, link.fp] = link
            known += found.values()
        return Links(fresh, known)

    # Step 2: bodies to segments

    async def _write_bodies(self, group: Sequence[Returned], gone: set[tuple[int, bytes]]) -> dict[int, Body]:
        """Where the body of each fence is stored. Of equal bodies in a crawl, one is written and the others refer to
        it. They never refer to a deleted page. Redirects and errors are written as they are.

        Small bodies are hashed and compressed here, some at a time: switching to a thread and back for every page costs
        more than the work itself.
        """
        kept = [(done, done.result.outcome) for done in group if done.result.page is not None and done.result.outcome]
        digests = await _digests(kept)
        same = await in_thread(self._same_bodies, [done.result for done, _ in kept], digests)
        packed: list[Packed] = []
        placed: dict[int, Body] = {}
        order: list[tuple[int, Body]] = []
        firsts: dict[tuple[int, str], Returned] = {}
        for number, (done, _) in enumerate(kept, 1):
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
            fence, crawl = done.result.lease.fence, done.result.lease.crawl
            digest = digests[fence]
            known = same.get((crawl, digest))
            if (stored := _stored_body(done, digest, known, gone)) is not None:
                placed[fence] = stored
                continue
            first = firsts.setdefault((crawl, digest), done)
            body, twin = _new_body(done, digest, known, first)
            packed.append(await _pack(_warc_item(done, digest, self._contexts, twin)))
            order.append((fence, body))
        for number, done in enumerate([d for d in group if is_other_response(d.result, self._settings.agent)], 1):
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
            item = _other_response(done, self._contexts)
            packed.append(warc.records(item))
            order.append((done.result.lease.fence, Body(item.sha256)))
        for (fence, body), ref in zip(order, await in_thread(self._segments.append, packed), strict=True):
            placed[fence] = body._replace(ref=ref)
        return placed

    def _same_bodies(self, kept: Sequence[Result], digests: Mapping[int, str]) -> dict[tuple[int, str], pages.Same]:
        by_crawl: dict[int, set[str]] = {}
        for result in kept:
            by_crawl.setdefault(result.lease.crawl, set()).add(digests[result.lease.fence])
        found: dict[tuple[int, str], pages.Same] = {}
        for crawl, wanted in by_crawl.items():
            with self._store.read() as tx:
                for n in self._crawls_to_search(tx, crawl):
                    for digest, one in pages.find_same(tx, n, wanted).items():
                        found[crawl, digest] = one
                        wanted.discard(digest)
                    if not wanted:
                        break
        return found

    def _crawls_to_search(self, tx: Any, crawl: int) -> list[int]:
        """The crawl and the earlier crawls of its schedule: their bodies are not stored again."""
        schedule = self._contexts[crawl].crawl.schedule
        earlier = [] if schedule is None else schedules.crawls_of(tx, schedule, _EARLIER_CRAWLS)
        return [crawl, *(n for n in earlier if n != crawl)]

    # Step 3: one database transaction

    def _write_rows(self, group: Sequence[Returned], links: Links, bodies: Mapping[int, Body], now_ms: int) -> Written:
        plan = self._transaction.plan(group, links, bodies, now_ms)
        return self._store.run(self._transaction, plan)

    # Step 4: the frontier

    async def _update_frontier(self, group: Sequence[Returned], written: Written, epochs: list[int | None]) -> None:
        for n, version in written.versions.items():
            context = self._contexts[n]
            context.renew(replace(context.crawl, version=version))
            await self._persist(partial(self._frontier.set_crawl, context.crawl, keep_budget=True))
        await self._correct_budgets(group, written)
        await self._push(written, epochs)
        follows = list(written.hosts.follows)
        if follows:
            # Before the slot of the origin's own robots.txt is returned: without its redirect the origin would wait.
            pushed = await self._persist(lambda: self._frontier.push(follows, front=True))
            await self._persist(lambda: handle_push_reply(self._frontier, self._store, pushed))
        point("commit.pushed")
        settled = [_settled(d.result, written) for d in group]
        held = [d.result.release() for d in group if d.result.robots is not None]
        rules = list(written.hosts.rules)
        reply = await self._persist(lambda: self._frontier.settle(settled, rules=rules, releases=held))
        point("commit.settled")
        self._scans.add(reply.scans)
        self._maintenance.idle.update(reply.idle)
        if nameless := written.hosts.nameless:
            await self._persist(lambda: self._frontier.drop(sorted(nameless)))
            self._maintenance.idle.update(n for n, _ in nameless)
        await self._remember(written)
        point("commit.seen")

    async def _correct_budgets(self, group: Sequence[Returned], written: Written) -> None:
        """Pages that were leased in an earlier epoch are missing in the budget that its rebuild set."""
        epochs = {shard.epoch for shard in self._frontier.shards}
        leases = [d.result.lease for d in group]
        late = {lease.crawl for lease in leases if epoch_of(lease.fence) not in epochs and lease.fence in written.used}
        for n in sorted(n for n in late if self._contexts[n].crawl.max_pages is not None):
            await self._persist(partial(send_crawls, self._frontier, self._store, {n}))

    async def _push(self, written: Written, epochs: list[int | None]) -> None:
        rows = [
            (link.crawl, link.host, written.inserted[link.crawl, link.fp], _entry(link))
            for link in written.stored
            if (link.crawl, link.fp) in written.inserted and (link.crawl, link.host) not in written.dead
        ]
        if not rows:
            return
        rows.sort(key=lambda row: row[2])
        pairs = sorted({(row[0], row[1]) for row in rows})
        tried = False

        async def once() -> None:
            nonlocal tried
            if tried or epochs != [shard.epoch for shard in self._frontier.shards]:
                # The queues may have the rows already: they are put back instead, and scans find their rows.
                self._scans.add(await put_back(self._frontier, self._store, pairs))
                return
            tried = True
            reply = await self._frontier.push(rows)
            self._scans.add(reply.scans)
            self._maintenance.resolve(reply.hosts)
            if reply.crawls:
                await send_crawls(self._frontier, self._store, reply.crawls)
                self._scans.add(await put_back(self._frontier, self._store, pairs))
            await handle_push_reply(self._frontier, self._store, reply)

        await self._persist(once)

    async def _remember(self, written: Written) -> None:
        by_crawl: dict[int, set[int]] = {}
        for link in written.stored:
            self._contexts[link.crawl].remember(link.url)
            by_crawl.setdefault(link.crawl, set()).add(short(link.fp))
        for link in (*written.refused, *written.known):
            self._contexts[link.crawl].remember(link.url)
        for crawl, where in written.offered:
            self._contexts[crawl].sitemapped.add(where)
        for crawl, shorts in by_crawl.items():
            await self._persist(partial(self._frontier.see, crawl, list(shorts)))


def _latest(group: Sequence[Returned]) -> int:
    return max((done.ended_ms for done in group), default=0)


async def _digests(kept: Sequence[tuple[Returned, Outcome]]) -> dict[int, str]:
    """The digest of the body of each fence."""
    digests: dict[int, str] = {}
    for number, (done, outcome) in enumerate(kept, 1):
        large = len(outcome.body) > _LARGE_BYTES
        digests[done.result.lease.fence] = await in_thread(_digest, outcome.body) if large else _digest(outcome.body)
        if number % _AT_A_TIME == 0:
            await asyncio.sleep(0)
    return digests


def _stored_body(done: Returned, digest: str, known: pages.Same | None, gone: set[tuple[int, bytes]]) -> Body | None:
    """The body of this page that is stored already, if it is the same."""
    result = done.result
    before = result.previous
    if before is not None and before.sha256 == digest and before.body is not None and _stays(before, gone):
        return Body(digest, before.body, before.same_as, unchanged=True)
    if known is not None and known.id == pages.page_id(result.lease.crawl, result.fp):
        # The page could not be read, was replayed, and has the same body again.
        return Body(digest, known.body)
    return None


def _new_body(
    done: Returned, digest: str, known: pages.Same | None, first: Returned
) -> tuple[Body, tuple[str, int] | None]:
    """A body to write, with URL and time of the page to which its record refers: `known` in the store has the same
    body, or `first` of the group.
    """
    if known is not None:
        return Body(digest, same_as=known.id), (known.url, known.fetched_ms)
    if first is not done:
        lease = first.result.lease
        same_as = pages.page_id(lease.crawl, first.result.fp)
        return Body(digest, same_as=same_as, first=lease.fence), (lease.entry.url, first.ended_ms)
    return Body(digest), None


async def _pack(item: WarcItem) -> Packed:
    large = len(item.gzipped or item.body) + len(item.picture or b"") > _LARGE_BYTES
    return await in_thread(warc.records, item) if large else warc.records(item)


def _stays(page: Page, gone: set[tuple[int, bytes]]) -> bool:
    own = (page.crawl, page.fp) in gone
    return not own and (page.same_as is None or pages.key_of(page.same_as) not in gone)


def _settled(result: Result, written: Written) -> Settled:
    if result.retry is None:
        spent = result.lease.fence in written.used or result.lease.fence in written.surplus
        return Settled(lease=result.lease, used=spent)
    return Settled(lease=result.lease, retry_ms=written.now_ms + result.decision.delay_ms, entry=result.retry)


def _entry(link: NewUrl) -> Entry:
    return Entry(url=link.url, kind=link.kind, depth=link.depth, chain=link.chain)


def _digest(body: bytes) -> str:
    return sha256(body).hexdigest()


def _other_response(done: Returned, contexts: Mapping[int, CrawlContext]) -> WarcItem:
    """A redirect or an error, with the beginning of its body."""
    outcome = done.result.outcome
    assert outcome is not None
    body = outcome.body[:BEGINNING_BYTES] or outcome.beginning
    cut = _CUT.get(outcome.fault, "unspecified") if outcome.fault is not None else None
    return replace(
        _warc_item(done, _digest(body), contexts, None),
        body=body,
        gzipped=b"",
        picture=None,
        truncated="length" if len(body) < len(outcome.body) else cut,
    )


def _warc_item(
    done: Returned, digest: str, contexts: Mapping[int, CrawlContext], same_as: tuple[str, int] | None
) -> WarcItem:
    outcome, lease = done.result.outcome, done.result.lease
    assert outcome is not None
    facts = [("crawl", contexts[lease.crawl].crawl.id), ("depth", str(lease.entry.depth))]
    if lease.entry.kind is Kind.BROWSER:
        facts += [("rendered-by", outcome.rendered_by or "browser"), ("subresources", str(len(outcome.subresources)))]
    return WarcItem(
        url=lease.entry.url, fetched_ms=done.ended_ms, status=outcome.status,
        headers=outcome.headers, body=outcome.body, gzipped=outcome.gzipped, sha256=digest,
        request_head=outcome.request_head, address=outcome.address, protocol=outcome.http_version,
        facts=facts, same_as=same_as, picture=outcome.screenshot,
    )  # fmt: skip
