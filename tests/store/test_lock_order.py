"""Concurrent transactions on PostgreSQL lock rows in one order (see `curtsy.store`), so none is a deadlock's victim.

Eight threads commit groups of results over the same crawls and hosts. Others load and park queues, mark hosts, reap
leases, replay dead letters, delete pages and crawls, and pause and resume crawls. CURTSY_LOCK_ORDER_S sets the length
of the run in seconds.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from curtsy.control import crawls as control
from curtsy.control import replay, submit
from curtsy.core.model import BodyRef, Crawl, CrawlState, Entry, Lane, Lease, NewUrl, new_id
from curtsy.core.observe import counters
from curtsy.core.outcome import Action, Decision, Fault, HostEffect, Outcome
from curtsy.core.settings import Settings
from curtsy.crawl import maintenance
from curtsy.crawl.commit_rows import Body, Links
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.results import PageFacts, Result, Returned
from curtsy.crawl.transaction import Transaction
from curtsy.frontier.messages import ReapedLease, ReapedSlot, Times
from curtsy.records import stages
from curtsy.rules.robots_policy import RobotsDecision
from curtsy.rules.urls import fingerprint
from curtsy.store import crawls, deletion, hosts, outbox, pages, queues, sites, urls
from curtsy.store.engine import Store
from curtsy.store.segments import Segments

RUN_S = float(os.environ.get("CURTSY_LOCK_ORDER_S", "10"))
COMMITTERS = 8
NOW = 1_700_000_000_000
#: code points and the database's collation may order these differently
HOSTS = ("a-b.test", "ab.test", "a.b.test", "b-a.test", "ba.test", "B0.test", "b_a.test", "b.test")
DIGEST = sha256(b"x").hexdigest()
#: URLs of each crawl on each host
URLS = 40


class World:
    """The crawls that everything here is about."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.settings = Settings()
        self.segments = Segments(folder)
        self.fences = count(1 << 40)
        given = ({}, {"max_pages": 10**9}, {"schema": "s", "per": "page"}, {"schema": "s", "per": "site"})
        made = (Crawl(id=new_id(), request_id="r", state=CrawlState.RUNNING, **some) for some in given)  # type: ignore[arg-type]
        self.crawls = [store.run(crawls.create, crawl) for crawl in made]
        self.contexts = {crawl.n: CrawlContext(crawl, self.settings) for crawl in self.crawls}
        self.transaction = Transaction(self.settings, self.contexts, dict.fromkeys(HOSTS, 1))
        for crawl in self.crawls:
            seeds = [self.url(host, i) for host in HOSTS for i in range(URLS)]
            store.run(submit.load_chunk, crawl, seeds, "host", True, {})

    def url(self, host: str, i: int) -> str:
        return f"https://{host.lower()}/{i}"

    def commit(self, pick: random.Random) -> None:
        group = [self._result(pick) for _ in range(pick.randint(4, 30))]
        fresh = {(link.crawl, link.fp): link for done in group for link in done.result.links}
        bodies = {
            done.result.lease.fence: Body(
                sha256(b"x").hexdigest(), BodyRef(segment=f"s{pick.randrange(3)}", offset=1, length=1)
            )
            for done in group
        }
        self.store.run(self.transaction, self.transaction.plan(group, Links(fresh=fresh), bodies, NOW))

    def _result(self, pick: random.Random) -> Returned:
        crawl, host, i = pick.choice(self.crawls).n, pick.choice(HOSTS).lower(), pick.randrange(URLS)
        url, fence = self.url(host, i), next(self.fences)
        lease = Lease(
            fence=fence, shard=0, host=host, crawl=crawl, crawl_version=0, lane=Lane.BATCH, entry=Entry(url=url),
            delay_ms=0, per_host=1, robots_ms=0, valid_until=0.0, failures=pick.randrange(2),
        )  # fmt: skip
        links = [self._link(pick) for _ in range(pick.randrange(8))]
        times = Times(NOW + fence, NOW + fence, NOW + fence)
        given: dict[str, Any] = {"lease": lease, "fp": fingerprint(url), "links": links}
        form = pick.randrange(8)
        if form < 4:
            outcome = Outcome(url=url, status=200, body=b"x", started=1.0, ended=2.0)
            member = f"m{pick.randrange(500)}.test" if form == 0 else None
            result = Result(
                decision=Decision(action=Action.DONE), outcome=outcome, page=PageFacts() if form > 0 else None,
                member=member, effect=HostEffect(), needed_browser=bool(form == 3), **given,
            )  # fmt: skip
            return Returned(result=result, times=times)
        outcome = Outcome(url=url, fault=Fault.DNS_NONE if form == 7 else Fault.TIMEOUT, ended=2.0)
        effect = HostEffect(failures=1, block_ms=5)
        if form < 6:
            decision = Decision(action=Action.DEAD, reason="timeout")
            return Returned(result=Result(decision=decision, outcome=outcome, effect=effect, **given), times=times)
        robots = RobotsDecision(verdict="forbid")
        given |= {"fp": b"", "links": []}
        decision = Decision(action=Action.RETRY)
        return Returned(
            result=Result(decision=decision, outcome=outcome, effect=effect, robots=robots, **given), times=times
        )

    def _link(self, pick: random.Random) -> NewUrl:
        host = pick.choice((*HOSTS, f"n{pick.randrange(3000)}.test")).lower()
        url = self.url(host, pick.randrange(URLS, 100 * URLS))
        return NewUrl(crawl=pick.choice(self.crawls).n, fp=fingerprint(url), url=url, host=host)

    # What runs beside the commits

    def _pairs(self, pick: random.Random) -> list[tuple[int, str]]:
        every = [(crawl.n, host.lower()) for crawl in self.crawls for host in HOSTS]
        return pick.sample(every, pick.randint(2, len(every)))

    def park(self, pick: random.Random) -> None:
        self.store.run(queues.wait, [(*pair, pick.randint(1, 9)) for pair in self._pairs(pick)])

    def load(self, pick: random.Random) -> None:
        self.store.run(queues.loaded, self._pairs(pick))

    def close(self, pick: random.Random) -> None:
        self.store.run(sites.close, *pick.choice(self._pairs(pick)))

    def mark_hosts(self, pick: random.Random) -> None:
        names = [host.lower() for host in pick.sample(HOSTS, 4)]
        self.store.run(queues.mark, answered=set(names[:2]))
        self.store.run(queues.mark, silent=dict.fromkeys(names[2:], ("timeout", "")), now_ms=NOW)
        self.store.run(hosts.advance_times, [(name, NOW, 0) for name in names])
        self.store.run(urls.clear_retry_delays, names[0], 0)

    def bury(self, pick: random.Random) -> None:
        with self.store.read() as tx:
            found = [queue for queue, _ in queues.failing_since(tx, NOW * 2)]
        self.store.run(maintenance._mark_dead, pick.sample(found, min(len(found), 6)))

    def reap(self, pick: random.Random) -> None:
        items: list[ReapedSlot | ReapedLease] = []
        for crawl, host in self._pairs(pick)[:12]:
            fence, entry = next(self.fences), Entry(url=self.url(host, pick.randrange(URLS)), solo_crashes=2)
            condemned, robots = pick.randrange(2) == 0, pick.randrange(8) == 0
            items.append(
                ReapedLease(
                    shard=0, fence=fence, host=host, crawl=crawl, entry=entry, delay_ms=0, per_host=1,
                    times=(NOW, NOW), crashed=True, condemned=condemned, solo=True, own_robots=robots, raw=b"",
                )
            )  # fmt: skip
            items.append(
                ReapedSlot(
                    shard=0, fence=fence, host=host, leased_ms=NOW, expiry_ms=NOW, delay_ms=0, per_host=1,
                    crawl=crawl, raw=b"",
                )
            )  # fmt: skip
        self.store.run(maintenance._write_reaped, items, NOW)

    def replay(self, pick: random.Random) -> None:
        replay.replay(self.store, replay.Filter(limit=pick.randint(20, 400)), NOW)

    def pause_and_resume(self, pick: random.Random) -> None:
        n = pick.choice(self.crawls).n
        for state in (CrawlState.PAUSED, CrawlState.RUNNING):
            self.store.run(control._set_state, n, state, None, control.CHANGES[state])

    def submit(self, pick: random.Random) -> None:
        crawl = pick.choice(self.crawls[:4])  # the others are about to be deleted
        seeds = [self.url(pick.choice(HOSTS), pick.randrange(200 * URLS)) for _ in range(50)]
        self.store.run(submit.load_chunk, crawl, seeds, "host", True, {})

    def finish(self, pick: random.Random) -> None:
        n = pick.choice(self.crawls).n
        self.store.run(maintenance._finish_if_done, n, NOW)
        self.store.run(stages.finish_if_extracted, n, NOW)

    def run_stages(self, pick: random.Random) -> None:
        rows = self.store.run(stages._take, pick.randint(1, 40), NOW, pick.choice((1, 10_000)))
        for one in rows[::3]:
            self.store.run(outbox.failed, one.n, "error", "", None)
        for one in rows[1::3]:
            self.store.run(outbox.done, one.n)
        stages.take_back(self.store, rows[2::3])

    def delete_pages(self, pick: random.Random) -> None:
        host = pick.choice(HOSTS).lower()
        self.store.run(deletion.add, new_id(), NOW, host=host, crawl=pick.choice(self.crawls).n)
        self._carry_out()

    def delete_crawl(self, pick: random.Random) -> None:
        """One whose results still arrive while it is deleted."""
        crawl = self.store.run(crawls.create, Crawl(id=new_id(), request_id="r", state=CrawlState.RUNNING))
        self.contexts[crawl.n] = CrawlContext(crawl, self.settings)
        seeds = [self.url(host, i) for host in HOSTS for i in range(URLS)]
        self.store.run(submit.load_chunk, crawl, seeds, "host", True, {})
        self.crawls.append(crawl)
        time.sleep(0.2)
        self.store.run(crawls.set_state, crawl.n, CrawlState.DELETING, "deleted", NOW)
        self.store.run(deletion.add, new_id(), NOW, crawl=crawl.n, whole=True)
        self._carry_out()
        self.crawls.remove(crawl)

    def _carry_out(self) -> None:
        with self.store.lock("sweep"), self.store.read() as tx:
            noted = deletion.pending(tx)
            for one in noted:
                deletion.carry_out(self.store, self.segments, one, NOW, lambda: False)


@pytest.fixture
def world(postgres_url: str, tmp_path: Path) -> Iterator[World]:
    with Store.open(postgres_url) as store:
        yield World(store, tmp_path / "segments")


def test_transactions_that_run_beside_each_other_never_deadlock(world: World) -> None:
    before = counters["store_deadlocks"]
    beside = (
        world.park, world.load, world.close, world.mark_hosts, world.bury, world.reap, world.replay,
        world.pause_and_resume, world.submit, world.finish, world.run_stages, world.delete_pages, world.delete_crawl,
    )  # fmt: skip
    ran: Counter[str] = Counter()
    errors: list[BaseException] = []
    end = time.monotonic() + RUN_S

    def repeat(does: Callable[[random.Random], None], seed: int) -> None:
        pick = random.Random(seed)
        while time.monotonic() < end and not errors:
            try:
                does(pick)
                ran[does.__name__] += 1
            except BaseException as error:
                errors.append(error)

    work = [*([world.commit] * COMMITTERS), *beside]
    threads = [threading.Thread(target=repeat, args=(does, seed)) for seed, does in enumerate(work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    print(dict(ran), "deadlocks:", counters["store_deadlocks"] - before)
    assert counters["store_deadlocks"] - before == 0
    assert set(ran) == {does.__name__ for does in work}
    with world.store.read() as tx:
        assert pages.how_many(tx) > 0
