"""Random interleavings of everything that can happen to the frontier, against the model; the invariants always hold.

CURTSY_FRONTIER_EXAMPLES=5000 runs longer, with fresh randomness.
"""

from __future__ import annotations

import os
from pathlib import Path

from frontier_model import LANES, RENDER, Flight, Model
from frontier_servers import Cluster, Server
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from curtsy.core.model import CrawlState, Kind, Lane
from curtsy.core.outcome import HostEffect

pytest_plugins = ["frontier_fixtures"]

HOSTS = ("a.test", "b.test", "c.test:8080")
EXAMPLES = int(os.environ.get("CURTSY_FRONTIER_EXAMPLES", "0"))

hosts = st.sampled_from(HOSTS)
crawls = st.sampled_from([1, 2, 3])
workers = st.sampled_from([1, 2])
any_of = st.integers(0, 1_000_000)
pauses = st.lists(st.sampled_from([0.2, 6.0, 21.0]), min_size=1, max_size=4)
fates = st.sampled_from(["done", "retry", "later", "other"])
kinds = st.sampled_from([Kind.PAGE, Kind.PAGE, Kind.PAGE, Kind.BROWSER])
lanes = st.sampled_from([LANES, LANES, RENDER])
runs = st.sampled_from([1, 3, 32])
rarities = st.sampled_from(["crash"] * 6 + ["pause", "put back", "put back"] * 2 + ["flush", "old snapshot"])


class FrontierMachine(RuleBasedStateMachine):
    server: Server | Cluster

    @initialize(
        per_host=st.sampled_from([1, 2, 3, 16]),
        delays=st.lists(st.sampled_from([0.0, 0.0, 5.0, 20.0]), min_size=3, max_size=3),
        lane=st.sampled_from([Lane.BATCH, Lane.BATCH, Lane.HIGH]),
        shards=st.sampled_from([1, 1, 2, 3]),
        budgets=st.lists(st.sampled_from([None, None, 1, 2, 5]), min_size=2, max_size=2),
        rows=st.lists(st.tuples(crawls, hosts, st.sampled_from([1, 3, 3, 18])), min_size=2, max_size=5),
    )
    def begin(
        self, per_host: int, delays: list[float], lane: Lane, shards: int, budgets: list[int | None],
        rows: list[tuple[int, str, int]],
    ) -> None:  # fmt: skip
        self.model = Model(self.server, shards=shards)
        for host in HOSTS[1:]:
            self.model.know_robots(host)
        self.model.new_crawl(1, Lane.BATCH, delays[0], per_host, None)
        self.model.new_crawl(2, Lane.BATCH, delays[1], per_host, budgets[0])
        self.model.new_crawl(3, lane, delays[2], 1 if lane is Lane.HIGH else per_host, budgets[1])
        for crawl, host, count in rows:
            self.model.add(crawl, host, count, "https", "now")

    # Rules have no preconditions: a few milliseconds of real time may decide what is there, and a walk must draw the
    # same numbers when it is repeated. A rule that finds nothing to do does nothing.

    def in_flight(self, at: int) -> list[Flight]:
        found = self.model.in_flight
        return [found[at % len(found)]] if found else []

    @rule(crawl=crawls, host=hosts, count=st.sampled_from([1, 2, 3, 18]), scheme=st.sampled_from(["https", "http"]),
          push=st.sampled_from(["now", "now", "later", "never"]), kind=kinds)  # fmt: skip
    def add(self, crawl: int, host: str, count: int, scheme: str, push: str, kind: Kind) -> None:
        self.model.add(crawl, host, count, scheme, push, kind)

    @rule(at=any_of)
    def push_late(self, at: int) -> None:
        if self.model.unpushed:
            self.model.push(self.model.unpushed.pop(at % len(self.model.unpushed)))

    @rule(worker=workers, n=st.sampled_from([1, 2, 64]), solo=st.sampled_from([False, False, True]), lanes=lanes,
          run=runs)  # fmt: skip
    def lease(self, worker: int, n: int, solo: bool, lanes: tuple[Lane, ...], run: int) -> None:
        self.model.lease(worker, n, lanes, solo=solo, run=run)

    @rule(at=any_of, n=st.sampled_from([1, 2, 20]))
    def run_on(self, at: int, n: int) -> None:
        for flight in self.in_flight(at):
            self.model.run_on(flight, n)

    @rule(at=any_of, report=st.booleans())
    def start(self, at: int, report: bool) -> None:
        for flight in self.in_flight(at):
            self.model.start(flight, report=report)

    @rule(at=any_of, broken=st.booleans(), block=st.sampled_from([None, 0, 15_000]), slow=st.booleans(),
          wait=st.sampled_from([0, 250]), url_back=st.sampled_from([False, False, True]))  # fmt: skip
    def end(self, at: int, broken: bool, block: int | None, slow: bool, wait: int, url_back: bool) -> None:
        effect = None if block is None else HostEffect(block_ms=block, adaptive_ms=block // 10, slow=slow)
        for flight in self.in_flight(at):
            self.model.end(flight, broken=broken, effect=effect, url_back=url_back, wait_ms=wait)

    @rule(at=any_of, retry=st.sampled_from([None, None, 0, 40_000]), tell=st.sampled_from([True, True, True, False]),
          other=st.sampled_from([False, False, True]))  # fmt: skip
    def commit(self, at: int, retry: int | None, tell: bool, other: bool) -> None:
        waiting = self.model.waiting
        if waiting:
            self.model.commit(waiting[at % len(waiting)], retry_ms=retry, tell=tell, other=other)

    @rule(seconds=st.sampled_from([0.2, 6, 11, 25, 31]), reap=st.booleans(), beat=st.booleans())
    def time_passes(self, seconds: float, reap: bool, beat: bool) -> None:
        self.model.advance(seconds)
        if beat:
            self.model.heartbeat(1)
        if reap:
            self.model.reap()

    @rule(at=any_of, fate=st.sampled_from(["done", "done", "done", "lost"]))
    def scan(self, at: int, fate: str) -> None:
        """In any order, perhaps late: a scan whose lock has run out must change nothing."""
        if self.model.scans:
            scan = self.model.scans.pop(at % len(self.model.scans))
            if fate == "done":
                self.model.scan(scan)

    @rule(worker=workers, pauses=pauses, fate=fates, broken=st.booleans(), report=st.booleans(), scans=st.booleans(),
          block=st.sampled_from([None, None, 0, 15_000]), lanes=lanes, run=runs)  # fmt: skip
    def work(
        self, worker: int, pauses: list[float], fate: str, broken: bool, report: bool, scans: bool, block: int | None,
        lanes: tuple[Lane, ...], run: int,
    ) -> None:  # fmt: skip
        """What a worker does most of the time: so that random walks get far enough to meet the rare things."""
        model = self.model
        effect = None if block is None else HostEffect(block_ms=block)
        for pause in pauses:
            model.lease(worker, 64, lanes, run=run)
            for flight in [f for f in model.in_flight if f.worker == worker]:
                model.run_on(flight, run // 2)
            for flight in [f for f in model.in_flight if f.worker == worker]:
                model.start(flight, report=report)
            model.advance(pause)
            for flight in [f for f in model.in_flight if f.worker == worker]:
                model.end(flight, broken=broken, effect=effect, url_back=False, wait_ms=0)
            if fate != "later":
                for flight in [f for f in model.waiting if f.worker == worker]:
                    model.commit(flight, retry_ms=3000 if fate == "retry" else None, tell=True, other=fate == "other")
            while scans and model.scans:
                model.scan(model.scans.pop())
            model.check()

    @rule(worker=workers, pauses=pauses, report=st.booleans(), lanes=lanes, run=runs)
    def more_work(self, worker: int, pauses: list[float], report: bool, lanes: tuple[Lane, ...], run: int) -> None:
        self.work(worker, pauses, "done", broken=False, report=report, scans=True, block=None, lanes=lanes, run=run)

    @rule(worker=workers, pause=st.sampled_from([0.2, 6.0, 21.0]), report=st.booleans())
    def start_late(self, worker: int, pause: float, report: bool) -> None:
        """What was leased waits before it is sent; meanwhile rows are added, and the other worker looks for work."""
        model = self.model
        model.lease(worker, 64, run=4)
        for crawl, host in sorted({(f.lease.crawl, f.lease.host) for f in model.in_flight}):
            model.add(crawl, host, 1, "https", "now")
        model.advance(pause)
        model.lease(3 - worker, 64)
        for flight in [*model.in_flight]:
            model.start(flight, report=report)

    @rule(worker=workers, started=st.booleans(), after=st.sampled_from([31, 31, 45, 71]), lanes=lanes, run=runs,
          by_itself=st.booleans())  # fmt: skip
    def lose_worker(
        self, worker: int, started: bool, after: float, lanes: tuple[Lane, ...], run: int, by_itself: bool
    ) -> None:
        """It vanishes with what it has just leased; the reaper comes, and others go on at once."""
        model = self.model
        model.lease(worker, 64, lanes, run=run)
        for flight in [f for f in model.in_flight if f.worker == worker and started]:
            model.run_on(flight, 2)
        for flight in [f for f in model.in_flight if f.worker == worker and started]:
            model.start(flight, report=True)
        model.crash(worker, by_itself=by_itself)
        model.advance(after)
        model.reap()
        model.lease(3 - worker, 64, lanes)

    @rule(crawl=crawls, host=hosts, late=st.booleans(), kind=kinds)
    def commit_during_a_scan(self, crawl: int, host: str, late: bool, kind: Kind) -> None:
        """Rows are inserted while a scan of their queue is under way: it may have read them, or not; or comes late."""
        model = self.model
        mine = [scan for scan in model.scans if (scan.crawl, scan.host) == (crawl, host)]
        model.add(crawl, host, 2, "https", "later", kind)
        if late:
            model.advance(11)
            model.push(model.unpushed.pop())
        for scan in mine:
            model.scans.remove(scan)
            model.scan(scan)
        if not late:
            model.push(model.unpushed.pop())

    @rule(what=rarities, who=any_of)
    def rarely(self, what: str, who: int) -> None:
        if what == "crash":
            self.model.crash(1 + who % 2, by_itself=who % 4 > 1)
        elif what == "pause":
            crawl = 1 + who % 3
            running = self.model.crawls[crawl].state is CrawlState.RUNNING
            (self.model.pause if running else self.model.resume)(crawl)
        elif what == "put back":
            self.model.put_back()
        else:
            self.model.lose(flush=what == "flush")

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "model"):
            self.model.check()

    def teardown(self) -> None:
        if hasattr(self, "model"):
            try:
                self.model.drain()
            finally:
                self.model.close()


def _examples(server: Server | Cluster) -> int:
    """Most on the server that comes with the package; the others speak the same language."""
    if isinstance(server, Cluster):
        return 15
    return 20 if "redis" in Path(server.program).name else 60


def test_the_invariants_hold_in_every_state_and_everything_ends(frontier_server: Server | Cluster) -> None:
    FrontierMachine.server = frontier_server
    profile = settings(
        max_examples=EXAMPLES or _examples(frontier_server),
        stateful_step_count=25,
        derandomize=not EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        # Shrinking takes minutes; the long run does it.
        phases=list(Phase) if EXAMPLES else [Phase.generate],
    )
    run_state_machine_as_test(FrontierMachine, settings=profile)
