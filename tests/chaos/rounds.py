"""One round: a plan drawn from the seed, a crawl that suffers it, and what is found afterwards."""

from __future__ import annotations

import random
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from curtsy.core.failpoints import POINTS
from tests.chaos import browsers, findings
from tests.chaos.crawler import Crawler, Gave
from tests.chaos.findings import Baseline, Findings
from tests.chaos.metronome import Metronome
from tests.chaos.parts import Cable, Database, Postgres, Sqlite, Valkey, small_disk
from tests.chaos.site import FAST, RENDERED, SMALL_RENDERED, Site
from tests.chaos.troubles import BROWSER_TROUBLES, LOSSES, TROUBLES, nth
from tests.support.postgres_server import PgServer

#: a round that takes longer has not finished
LIMIT_S = 180.0
#: with a browser: a visit whose worker died keeps its host for a slot of its own
RENDER_LIMIT_S = 240.0
#: one round in so many has a browser
RENDER_EVERY = 3
#: of the others, one in so many has no delay, and 1, 4 or 16 requests in flight per host
FAST_EVERY = 4


BROWSER_NAMES = tuple(BROWSER_TROUBLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will go wrong in a round; the same for the same seed and number."""

    number: int
    store: str
    troubles: tuple[str, ...]
    #: seconds before each trouble
    pauses_s: tuple[float, ...]
    processes: int
    #: CURTSY_FAULT, and the life of the process that gets it
    fault: str
    fault_life: int
    #: a Valkey of our own, behind a cable
    own_valkey: bool
    mounted_disk: bool
    #: with hosts that say nothing without their scripts, and `--render auto`
    render: bool = False
    #: a smaller web, and one trouble of a browser's alone
    short: bool = False
    #: without a delay, with this many requests in flight per host; 0: with a delay, one at a time
    per_host: int = 0

    @property
    def site(self) -> Site:
        if self.per_host and not self.render:
            return FAST[self.per_host]
        return (SMALL_RENDERED if self.short else RENDERED) if self.render else Site()

    @property
    def limit_s(self) -> float:
        return RENDER_LIMIT_S if self.render else LIMIT_S

    @property
    def point(self) -> str:
        return self.fault.partition(":")[0]


def fast_turn(number: int) -> int:
    """The requests in flight per host of a round that has its turn without a delay; else 0."""
    return tuple(FAST)[number // FAST_EVERY % len(FAST)] if number % FAST_EVERY == 0 else 0


def plan(
    seed: int, number: int, store: str, turn: int, *, render: bool = False, short: bool = False, per_host: int = 0,
    named: tuple[str, ...] = (),
) -> Plan:  # fmt: skip
    """`turn` counts the rounds of a store: every trouble and every point has its turn on each. `named`: troubles that
    replace those of the seed."""
    rng = random.Random(f"{seed}:{number}")
    names = list(TROUBLES)
    chosen = [names[turn % len(names)], *rng.choices(names, k=rng.choice((1, 2, 2, 3)))]
    # A few rounds of another seed begin with other points.
    point = POINTS[(turn + (seed - 1) * 5) % len(POINTS)]
    life = 1 if rng.random() < 0.7 else 2
    if render:
        chosen = chosen[:2]
    rng.shuffle(chosen)
    pauses_s = [rng.uniform(0.3, 2.5) for _ in range(5)]
    processes = rng.choice((1, 1, 2))
    if "kill" not in chosen:
        life = 1  # there may be no second one
    if point == "reap.written":
        # Something must expire first: a killed process leaves leases behind, if it was killed in the midst of its work.
        chosen, life, processes = ["kill", *chosen[:2]], 2, 1
        pauses_s = [rng.uniform(2.5, 4.0), rng.uniform(5.0, 6.0), *pauses_s]
    elif point.startswith("rebuild.") and turn >= len(POINTS):
        # The second time around it is no first start that is hit, but the rebuild after a loss.
        chosen, life = ["kill", rng.choice(sorted(LOSSES)), *chosen[:2]], 2
    if render:
        at = 2 * (seed - 1) + (number - RENDER_EVERY if short else 2 * (number // RENDER_EVERY - 1))
        chosen[1:1] = [BROWSER_NAMES[(at + n) % len(BROWSER_NAMES)] for n in range(1 if short else 2)]
        pauses_s += [0.5, 0.5]
    if named:
        chosen, pauses_s = list(named), [rng.uniform(0.5, 2.0) for _ in named]
    return Plan(
        number=number,
        store=store,
        render=render,
        short=short,
        per_host=per_host,
        troubles=tuple(chosen),
        pauses_s=tuple(pauses_s[: len(chosen)]),
        processes=processes,
        fault=f"{point}:{nth(point, rng)}",
        fault_life=life,
        own_valkey=not {"snapshot", "reload"}.isdisjoint(chosen) or rng.random() < 0.4,
        # A browser that is started under a limit of its parent's keeps it.
        mounted_disk=rng.random() < 0.7 or render,
    )


@dataclass(slots=True, kw_only=True)
class Round:
    """A round that is over."""

    plan: Plan
    done: list[str] = field(default_factory=list)
    found: Findings = field(default_factory=Findings)
    resumes: int = 0
    seconds: float = 0.0
    fault_hit: bool = False
    #: why it did not finish; None: it did
    unfinished: str | None = None
    #: browsers that did not end
    left: list[str] = field(default_factory=list)
    folder: Path | None = None

    @property
    def clean(self) -> bool:
        return self.unfinished is None and self.found.clean and not self.left


class Arena:
    """Where rounds take place: a PostgreSQL for all of them, and the baseline."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.postgres: PgServer | None = None
        self.baselines: dict[Site, Baseline] = {}

    def undisturbed(self, web: Site) -> float:
        """Crawls a web once in peace; how long it took."""
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="peace-", dir=self.folder))
        (folder / "chaos.toml").write_text(web.settings)
        metronome = Metronome(folder / "stalls")
        with web.start(folder / "access.log") as running:
            crawler = Crawler(
                folder, Sqlite(folder / "data" / "curtsy.sqlite"), None, None, None, seeds=web.seeds(running),
                resolve=running.resolve_rule, processes=1, fault=None, fault_life=0, render=web.render,
            )  # fmt: skip
            try:
                crawler.start()
                _to_the_end(crawler, began + RENDER_LIMIT_S)
                left = browsers.left(folder) if web.render else []
                expected = self.baselines[web] = findings.baseline(crawler, web)
                running.requests()
                found = findings.look(crawler, web, expected, folder / "access.log", metronome.stalls(), stopped=False)
            finally:
                crawler.close()
                metronome.close()
        if not found.clean or left:
            raise SystemExit("Even in peace something is wrong:\n" + "\n".join((left + found.lines())[:20]))
        return time.monotonic() - began

    def round(self, plan: Plan) -> Round:
        result = Round(plan=plan)
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix=f"round-{plan.number}-", dir=self.folder))
        result.folder = folder
        (folder / "chaos.toml").write_text(plan.site.settings)
        with ExitStack() as stack:
            metronome = Metronome(folder / "stalls")
            stack.callback(metronome.close)
            web = stack.enter_context(plan.site.start(folder / "access.log"))
            crawler = self._crawler(plan, folder, stack, plan.site.seeds(web), web.resolve_rule)
            try:
                _suffer(crawler, plan, random.Random(f"{self.seed}:{plan.number}:play"), result, began + plan.limit_s)
            except Gave as error:
                result.unfinished = str(error)
            result.resumes, result.fault_hit = crawler.lives - 1, crawler.fault_hit
            if crawler.refused:
                result.done.append(f"{crawler.refused} starts refused")
            if result.unfinished is None:
                result.left = browsers.left(folder) if plan.render else []
                web.requests()
                self._look(crawler, metronome, result)
        if result.clean:
            crawler.database.drop()
        result.seconds = time.monotonic() - began
        return result

    def _look(self, crawler: Crawler, metronome: Metronome, result: Round) -> None:
        web = result.plan.site
        try:
            # Where no undisturbed crawl was made, the generator has its word, and the first round for the others.
            expected = self.baselines.get(web) or findings.baseline(crawler, web)
        except AssertionError as error:
            result.unfinished = str(error)
            return
        log, stopped = crawler.folder / "access.log", any(name in ("stop", "visit-stop") for name in result.done)
        result.found = findings.look(crawler, web, expected, log, metronome.stalls(), stopped=stopped)
        if result.clean:
            self.baselines[web] = expected

    def _crawler(self, plan: Plan, folder: Path, stack: ExitStack, seeds: list[str], resolve: str) -> Crawler:
        disk = None
        if "disk" in plan.troubles:
            disk = small_disk(folder / "data" / "segments", mounted=plan.mounted_disk)
            stack.callback(disk.close)
        valkey = cable = None
        if plan.own_valkey:
            valkey = Valkey(folder / "valkey")
            stack.callback(valkey.kill9)
            valkey.start()
        if valkey is not None and "cut" in plan.troubles:
            cable = Cable(folder / "c.sock", valkey.socket)
            stack.callback(cable.close)
        crawler = Crawler(
            folder, self._database(plan, folder), disk, valkey, cable, seeds=seeds, resolve=resolve,
            processes=plan.processes, fault=plan.fault, fault_life=plan.fault_life, render=plan.render,
        )  # fmt: skip
        stack.callback(crawler.close)
        return crawler

    def _database(self, plan: Plan, folder: Path) -> Database:
        if plan.store == "sqlite":
            return Sqlite(folder / "data" / "curtsy.sqlite")
        assert self.postgres is not None
        return Postgres(self.postgres, folder.name)


def _suffer(crawler: Crawler, plan: Plan, rng: random.Random, result: Round, end: float) -> None:
    crawler.start()
    for name, pause_s in zip(plan.troubles, plan.pauses_s, strict=True):
        # After a kill the pause is that of the next life; a stop of its own may end it early.
        if not crawler.keep_alive():
            return
        crawler.pause(pause_s)
        if not crawler.keep_alive():
            return
        result.done.append((TROUBLES | BROWSER_TROUBLES)[name](crawler, rng))
    _to_the_end(crawler, end)


def _to_the_end(crawler: Crawler, end: float) -> None:
    while crawler.keep_alive():
        if time.monotonic() > end:
            raise Gave(f"it has not finished in time; see {crawler.folder / 'crawl.log'}")
        crawler.pause(0.5)
