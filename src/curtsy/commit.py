"""The commit: the one way in which fetched work becomes durable.

    1  which links may be new?      read only: `seen` and this process's memory are asked, nothing is written to them
    2  bodies to segments           durable before any row refers to them
    3  one database transaction     the database is the fence: only rows that were open change
    4  the frontier                 new rows are listed, leases settled, and only now fingerprints enter the filters

A crash anywhere repeats a fetch at worst; docs/architecture.md goes through every gap.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain as concatenate
from typing import Any, NamedTuple

from curtsy.contexts import CrawlContext
from curtsy.faults import point
from curtsy.frontier.frontier import Frontier, Release, Rules, Settled
from curtsy.harvest import Finished
from curtsy.model import (
    Action,
    BodyRef,
    Chain,
    Entry,
    Failure,
    Fault,
    HostState,
    Kind,
    NewUrl,
    Page,
    Request,
    RobotsState,
    UrlState,
)
from curtsy.observe import count
from curtsy.politeness import robots_delay_ms
from curtsy.recovery import in_thread, introduce, introduce_crawls, put_back
from curtsy.robots import Robots
from curtsy.settings import Settings
from curtsy.store import crawls, failures, hosts, pages, queues, requests, urls
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore
from curtsy.store.warc import WarcItem
from curtsy.upkeep import Upkeep
from curtsy.urls import host_key, origin, short

#: how long a redirected robots.txt may take before its origin asks anew
_FOLLOW_MS = 60_000
#: an origin whose rules fail while others of its host have theirs is asked so many times more seldom
_BESIDE_OTHERS = 10
#: how long an origin that may not be asked is left without another look
_UNASKED_MS = 60_000
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


class Committer:
    """Commits groups one after another."""

    def __init__(
        self, frontier: Frontier, store: Store, segments: SegmentStore, settings: Settings,
        contexts: Mapping[int, CrawlContext], upkeep: Upkeep,
        persist: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]],
    ) -> None:  # fmt: skip
        self._frontier = frontier
        self._store = store
        self._segments = segments
        self._settings = settings
        self._contexts = contexts
        self._upkeep = upkeep
        #: repeats a step until its part answers again, rebuilding the frontier where it was lost
        self._persist = persist

    async def commit(self, group: Sequence[Finished]) -> None:
        """Durable and published on return."""
        point("commit.begin")
        began = time.monotonic()
        links = await self._persist(lambda: self._may_be_new(group))
        bodies = await self._persist(lambda: in_thread(self._write_bodies, group))
        point("commit.segments")
        epochs = [shard.epoch for shard in self._frontier.shards]
        now_ms = _latest(group) or int(time.time() * 1000)
        written: Written = await self._persist(
            lambda: in_thread(self._store.run, self._transact, group, links, bodies, now_ms)
        )
        point("commit.stored")
        self._upkeep.heard(written.answered, written.silent, written.now_ms)
        await self._publish(group, written, epochs)
        count("commits")
        count("commit_pages", len(group))
        count("commit_ms", int((time.monotonic() - began) * 1000))

    # 1

    async def _may_be_new(self, group: Sequence[Finished]) -> Links:
        by_crawl: dict[int, dict[int, NewUrl]] = {}
        for link in dict.fromkeys(concatenate.from_iterable(done.links for done in group)):
            by_crawl.setdefault(link.crawl, {}).setdefault(short(link.fp), link)
        links = Links()
        for crawl, found in by_crawl.items():
            shorts = list(found)
            for position in await self._frontier.unseen(crawl, shorts):
                link = found.pop(shorts[position])
                links.fresh[crawl, link.fp] = link
            links.known += found.values()
        return links

    # 2

    def _write_bodies(self, group: Sequence[Finished]) -> dict[int, Body]:
        """Where the body of each fence stands. Of equal bodies in a crawl one is written, the others refer to it."""
        digests = {
            done.lease.fence: sha256(done.outcome.body).hexdigest() for done in group if done.page and done.outcome
        }
        same = self._same_bodies(group, digests)
        items: list[WarcItem] = []
        placed: dict[int, Body] = {}
        order: list[tuple[int, Body]] = []
        firsts: dict[tuple[int, str], Finished] = {}
        for done in group:
            if not done.page or done.outcome is None:
                continue
            fence, crawl = done.lease.fence, done.lease.crawl
            digest = digests[fence]
            before = done.previous
            if before is not None and before.sha256 == digest and before.body is not None:
                placed[fence] = Body(digest, before.body, before.same_as, unchanged=True)
                continue
            first = firsts.setdefault((crawl, digest), done)
            if known := same.get((crawl, digest)):
                body, twin = Body(digest, same_as=known.id), (known.url, known.fetched_ms)
            elif first is not done:
                body = Body(digest, same_as=pages.page_id(crawl, first.fp), first=first.lease.fence)
                twin = (first.lease.entry.url, _ended_ms(first))
            else:
                body, twin = Body(digest), None
            items.append(_warc_item(done, digest, self._contexts, twin))
            order.append((fence, body))
        for (fence, body), ref in zip(order, self._segments.append(items), strict=True):
            placed[fence] = body._replace(ref=ref)
        return placed

    def _same_bodies(self, group: Sequence[Finished], digests: Mapping[int, str]) -> dict[tuple[int, str], pages.Same]:
        by_crawl: dict[int, set[str]] = {}
        for done in group:
            if done.lease.fence in digests:
                by_crawl.setdefault(done.lease.crawl, set()).add(digests[done.lease.fence])
        found: dict[tuple[int, str], pages.Same] = {}
        for crawl, wanted in by_crawl.items():
            with self._store.read() as tx:
                for digest, one in pages.find_same(tx, crawl, wanted).items():
                    found[crawl, digest] = one
        return found

    # 3

    def _transact(
        self, tx: Any, group: Sequence[Finished], links: Links,
        bodies: Mapping[int, Body], now_ms: int,
    ) -> Written:  # fmt: skip
        """Tables in one order, rows sorted by key: two processes' commits do not deadlock."""
        written = Written(now_ms=now_ms)
        surplus = self._surplus(tx, group)
        self._write_hosts(tx, group, written)
        opened = self._open_queues(tx, links)
        written.surplus, written.dead = surplus, {key for key, queue in opened.items() if queue.state == "dead"}
        changed = urls.settle(tx, [_settle(d, surplus, now_ms) for d in group if d.fp], now_ms)
        effective = [d for d in group if d.fp and (d.lease.crawl, d.fp) in changed]
        self._insert_links(tx, self._effective_links(group, effective, links), opened, written)
        written.known = links.known
        written.offered = {(d.lease.crawl, d.offers) for d in effective if d.offers is not None}
        kept = [d for d in effective if d.page and d.lease.fence not in surplus]
        written.used = {d.lease.fence for d in kept}
        pages.insert(tx, [self._page(d, _standing(bodies, d.lease.fence, written.used)) for d in kept])
        requests.insert(tx, [_request(d) for d in group if d.times is not None])
        failures.insert(tx, [self._failure(d, now_ms) for d in effective if d.decision.action is Action.DEAD])
        self._write_crawls(tx, effective, kept, surplus, written)
        return written

    def _surplus(self, tx: Any, group: Sequence[Finished]) -> set[int]:
        """Fences whose page is over max_pages: decided under the crawl row's lock."""
        limited = {d.lease.crawl for d in group if self._contexts[d.lease.crawl].crawl.max_pages is not None and d.page}
        if not limited:
            return set()
        left = {n: (most or 0) - pages_ for n, (most, pages_) in crawls.lock_budgets(tx, limited).items()}
        surplus: set[int] = set()
        for done in group:
            n = done.lease.crawl
            if done.page and n in left:
                left[n] -= 1
                if left[n] < 0:
                    surplus.add(done.lease.fence)
        return surplus

    def _write_hosts(self, tx: Any, group: Sequence[Finished], written: Written) -> None:
        states: dict[str, HostState] = {}
        rules: list[RobotsState] = []
        for done in group:
            if done.times is not None:
                _learn(states, done)
            if done.robots is not None:
                self._learn_robots(tx, done, states, rules, written)
        hosts.upsert(tx, states.values())
        hosts.upsert_robots(tx, rules)
        self._note_silence(tx, group, written)

    def _note_silence(self, tx: Any, group: Sequence[Finished], written: Written) -> None:
        """Hosts that did not answer, and those that do again; one that did both in this group answers."""
        known = self._upkeep.silent
        answered = {d.lease.host for d in group if _is_answer(d) and (d.lease.failures or d.lease.host in known)}
        silent = {d.lease.host for d in group if d.effect is not None and d.effect.failures > 0}
        silent |= {self._asked_first(d)[1] for d in group if d.robots is not None and d.robots.verdict == "forbid"}
        if answered:
            queues.recovered(tx, answered)
        if silent:
            queues.failing(tx, silent, written.now_ms)
        written.answered, written.silent = answered, silent
        for done in group:
            if _has_no_name(done) and queues.mark_dead(tx, done.lease.crawl, done.lease.host, Fault.DNS_NONE.value):
                written.nameless.add((done.lease.crawl, done.lease.host))

    def _learn_robots(
        self, tx: Any, done: Finished, states: dict[str, HostState], rules: list[RobotsState], written: Written
    ) -> None:
        """Rules hold for the origin that was asked first, wherever its redirects led."""
        answer, outcome, chain = done.robots, done.outcome, done.lease.entry.chain
        assert answer is not None
        assert outcome is not None
        where, host = self._asked_first(done)
        now_ms = written.now_ms
        if answer.verdict == "follow" and answer.location is not None:
            trail = (*(chain.trail if chain else ()), short(done.fp or b"\0" * 8))
            entry = Entry(url=answer.location, kind=Kind.ROBOTS, chain=Chain(trail=trail, robots_of=where))
            target = host_key(answer.location, self._settings.politeness_unit)
            written.follows.append((done.lease.crawl, target, 0, entry))
            written.rules.append(
                Rules(host=host, origin=where, until_ms=now_ms + _FOLLOW_MS, fetched_ms=0, pending=True)
            )
        elif answer.verdict == "skip":
            until_ms = now_ms + _UNASKED_MS
            rules.append(
                RobotsState(
                    origin=where, host=host, fetched_ms=now_ms, expires_ms=until_ms, status=0, verdict=answer.reason
                )
            )
            written.rules.append(Rules(host=host, origin=where, until_ms=until_ms, fetched_ms=now_ms))
        elif answer.verdict in ("rules", "allow"):
            fetched = done.times.end_ms if done.times is not None else now_ms
            body = outcome.body[: 500 * 1024] if answer.verdict == "rules" else b""
            parsed = Robots.parse(body)
            delay_ms = robots_delay_ms(parsed, self._settings.agent, self._settings) or 0
            expires = fetched + int(self._settings.robots_ttl_s * 1000)
            rules.append(
                RobotsState(
                    origin=where, host=host, fetched_ms=fetched, expires_ms=expires, status=outcome.status, body=body,
                    verdict=answer.verdict,
                )
            )  # fmt: skip
            states[host] = replace(states.get(host) or HostState(host=host), robots_delay_ms=delay_ms)
            written.rules.append(
                Rules(host=host, origin=where, until_ms=expires, fetched_ms=fetched, delay_ms=delay_ms)
            )
        else:
            # Forbidden for now, or nothing was asked: the origin asks again when the pause is over.
            pause_ms = max(250, done.effect.block_ms if done.effect is not None else 0)
            if answer.verdict == "forbid":
                times = _BESIDE_OTHERS if _has_other_rules(tx, host, where) else 1
                pause_ms = max(pause_ms, times * int(self._settings.backoff_s * 1000))
            written.rules.append(Rules(host=host, origin=where, until_ms=now_ms + pause_ms, fetched_ms=0, pending=True))

    def _asked_first(self, done: Finished) -> tuple[str, str]:
        """The origin whose robots.txt this is about, and its host."""
        chain = done.lease.entry.chain
        where = chain.robots_of if chain is not None and chain.robots_of else origin(done.lease.entry.url)
        return where, host_key(where + "/", self._settings.politeness_unit)

    def _open_queues(self, tx: Any, links: Links) -> dict[tuple[int, str], queues.Queue]:
        wanted = {(link.crawl, link.host) for link in links.fresh.values()}
        lanes = {n: self._contexts[n].crawl.lane.value for n, _ in wanted}
        return queues.open_queues(tx, [(n, host, lanes[n], 0) for n, host in wanted]) if wanted else {}

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
        return Page(
            id=pages.page_id(lease.crawl, done.fp), crawl=lease.crawl, fp=done.fp, fence=lease.fence,
            url=lease.entry.url, host=lease.host, status=outcome.status,
            fetched_ms=_ended_ms(done), depth=lease.entry.depth,
            content_type=outcome.header("content-type"), charset=done.charset, title=done.title, sha256=body.sha256,
            size=len(outcome.body), etag=outcome.header("etag"), last_modified=outcome.header("last-modified"),
            canonical=done.canonical, language=done.language, unchanged=body.unchanged, body=body.ref,
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
        crawls.add_pages(tx, taken)
        crawls.add_counts(tx, counts)
        joined: dict[int, set[str]] = {}
        for done in effective:
            if done.member is not None:
                joined.setdefault(done.lease.crawl, set()).add(done.member)
        for n in sorted(joined):
            written.versions[n] = crawls.extend_members(tx, n, joined[n])

    # 4

    async def _publish(self, group: Sequence[Finished], written: Written, epochs: list[int | None]) -> None:
        for n, version in written.versions.items():
            context = self._contexts[n]
            context.renew(replace(context.crawl, version=version))
            await self._persist(lambda c=context.crawl: self._frontier.set_crawl(c, keep_budget=True))  # type: ignore[misc]
        await self._correct_budgets(group, written)
        await self._push(written, epochs)
        if written.follows:
            # Before the slot of the origin's own robots.txt goes back: a follow that is lost holds the origin up.
            pushed = await self._persist(lambda: self._frontier.push(written.follows, front=True))
            await self._persist(lambda: introduce(self._frontier, self._store, pushed))
        point("commit.pushed")
        settled = [_settled(d, written) for d in group]
        held = [_release(d) for d in group if d.robots is not None]
        reply = await self._persist(lambda: self._frontier.settle(settled, rules=written.rules, releases=held))
        point("commit.settled")
        self._upkeep.scan(reply.scans)
        self._upkeep.idle.update(reply.idle)
        if written.nameless:
            await self._persist(lambda: self._frontier.drop(sorted(written.nameless)))
            self._upkeep.idle.update(n for n, _ in written.nameless)
        await self._remember(written)
        point("commit.seen")

    async def _correct_budgets(self, group: Sequence[Finished], written: Written) -> None:
        """Pages of an earlier epoch were not known when the budget was set at its rebuild."""
        epochs = {shard.epoch for shard in self._frontier.shards}
        late = {d.lease.crawl for d in group if d.lease.fence >> 40 not in epochs and d.lease.fence in written.used}
        for n in sorted(n for n in late if self._contexts[n].crawl.max_pages is not None):
            await self._persist(lambda n=n: introduce_crawls(self._frontier, self._store, {n}))  # type: ignore[misc]

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
                # They may stand in the list already: a queue is put back instead, its rows are found by scan.
                self._upkeep.scan(await put_back(self._frontier, self._store, pairs))
                return
            tried = True
            reply = await self._frontier.push(rows)
            self._upkeep.scan(reply.scans)
            self._upkeep.meets(reply.hosts)
            if reply.crawls:
                await introduce_crawls(self._frontier, self._store, reply.crawls)
                self._upkeep.scan(await put_back(self._frontier, self._store, pairs))
            await introduce(self._frontier, self._store, reply)

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
            await self._persist(lambda c=crawl, s=list(shorts): self._frontier.see(c, s))  # type: ignore[misc]


def _ended_ms(done: Finished) -> int:
    return done.times.end_ms if done.times is not None else 0


def _standing(bodies: Mapping[int, Body], fence: int, kept: set[int]) -> Body:
    """A body that refers to one of this group whose page is not kept stands there itself."""
    body = bodies[fence]
    if body.first is None or body.first in kept:
        return body
    return body._replace(ref=bodies[body.first].ref, same_as=None)


def _latest(group: Sequence[Finished]) -> int:
    return max((done.times.end_ms for done in group if done.times is not None), default=0)


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


def _settled(done: Finished, written: Written) -> Settled:
    if done.retry is None:
        spent = done.lease.fence in written.used or done.lease.fence in written.surplus
        return Settled(lease=done.lease, used=spent)
    return Settled(lease=done.lease, retry_ms=written.now_ms + done.decision.delay_ms, entry=done.retry)


def _release(done: Finished) -> Release:
    outcome = done.outcome
    assert outcome is not None
    return Release(
        lease=done.lease,
        started=outcome.started,
        ended=outcome.ended,
        broken_off=outcome.broken_off,
        effect=done.effect,
    )


def _has_other_rules(tx: Any, host: str, where: str) -> bool:
    known = hosts.robots_of_hosts(tx, [host]).get(host, ())
    return any(origin_ != where and verdict in ("rules", "allow") for origin_, _, _, verdict in known)


def _has_no_name(done: Finished) -> bool:
    """The name of the host was looked up for its robots.txt, not for the first time, and does not exist."""
    outcome, lease = done.outcome, done.lease
    own = done.robots is not None and lease.entry.chain is None
    return own and outcome is not None and outcome.fault is Fault.DNS_NONE and lease.failures > 0


def _is_answer(done: Finished) -> bool:
    """The host answered, and where its rules were asked for, they are known now."""
    if done.effect is None or done.effect.failures > 0:
        return False
    return done.robots is None or done.robots.verdict in ("rules", "allow")


def _learn(states: dict[str, HostState], done: Finished) -> None:
    times, effect, host = done.times, done.effect, done.lease.host
    assert times is not None
    before = states.get(host) or HostState(host=host)
    blocked_ms = times.end_ms + effect.block_ms if effect is not None and effect.block_ms else 0
    changed_ms = effect.adaptive_ms if effect is not None else None
    states[host] = HostState(
        host=host,
        next_ms=max(times.next_ms, before.next_ms),
        blocked_until_ms=max(blocked_ms, before.blocked_until_ms),
        adaptive_ms=before.adaptive_ms if changed_ms is None else changed_ms,
        failures=effect.failures if effect is not None else 0,
        slow=effect.slow if effect is not None else False,
        last_ok_ms=times.end_ms if _is_answer(done) else before.last_ok_ms,
        robots_delay_ms=before.robots_delay_ms,
    )


def _entry(link: NewUrl) -> Entry:
    return Entry(url=link.url, kind=link.kind, depth=link.depth, chain=link.chain)


def _request(done: Finished) -> Request:
    lease, outcome, times = done.lease, done.outcome, done.times
    assert outcome is not None
    assert times is not None
    return Request(
        fence=lease.fence, crawl=lease.crawl, host=lease.host, url=lease.entry.url, start_ms=times.start_ms,
        end_ms=times.end_ms, kind=lease.entry.kind.value, status=done.answered or outcome.status,
        fault=None if outcome.fault is None else outcome.fault.value, delay_ms=lease.delay_ms, per_host=lease.per_host,
    )  # fmt: skip


def _warc_item(
    done: Finished, digest: str, contexts: Mapping[int, CrawlContext], same_as: tuple[str, int] | None
) -> WarcItem:
    outcome, lease = done.outcome, done.lease
    assert outcome is not None
    return WarcItem(
        url=lease.entry.url, fetched_ms=_ended_ms(done), status=outcome.status,
        headers=outcome.headers, body=outcome.body, sha256=digest, request_head=outcome.request_head,
        address=outcome.address, protocol=outcome.http_version,
        facts=(("crawl", contexts[lease.crawl].crawl.id), ("depth", str(lease.entry.depth))), same_as=same_as,
    )  # fmt: skip
