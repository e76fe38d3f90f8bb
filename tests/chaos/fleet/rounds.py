"""One round of a fleet: a plan drawn from the seed, crawls that suffer it, and what is found afterwards."""

from __future__ import annotations

import random
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import site
from tests.chaos.findings import Findings
from tests.chaos.fleet import findings
from tests.chaos.fleet.findings import Baseline
from tests.chaos.fleet.orders import PATIENCE_S, Desk, orders
from tests.chaos.fleet.troop import Troop, free_port, until
from tests.chaos.fleet.troubles import BROWSER_TROUBLES, TROUBLES, Scene
from tests.chaos.metronome import Metronome
from tests.chaos.parts import Database, Postgres, Sqlite
from tests.chaos.site import RENDERED, SMALL_RENDERED, Site
from tests.support.postgres_server import PgServer

#: after the last trouble, all crawls end within this time
LIMIT_S = 120.0
#: with a browser: a visit whose worker died keeps its host for a slot of its own
RENDER_LIMIT_S = 240.0
#: one round in so many has a browser
RENDER_EVERY = 3
LONG_LULL_S = 60.0
#: for the short form: what takes its time is left out
SMALL = Site(6, 8, tuple(fault for fault in site.FAULTS if fault not in ("hang", "retry-after-seconds")))
#: several shifts in a lane at a time; tickets, shifts and stages that were lost are missed soon
SETTINGS = (
    Site().settings
    + """
concurrency = 4
slow_concurrency = 2
ticket_s = 3
shift_s = 6
commit_timeout_s = 10
stage_lease_s = 4
log_format = "json"
"""
)
BROWSER_NAMES = tuple(BROWSER_TROUBLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will go wrong in a round; the same for the same seed and number."""

    number: int
    store: str
    troubles: tuple[str, ...]
    #: seconds before each trouble
    pauses_s: tuple[float, ...]
    beats: int
    lull_s: float
    #: how long worker processes are killed in `kills`
    kills_s: float = 20.0
    #: with hosts that say nothing without their scripts, crawls with `render`, and a worker that has browsers
    render: bool = False


def plan(
    seed: int, number: int, store: str, turn: int, long: bool, *, render: bool = False, short: bool = False
) -> Plan:
    """`turn` counts the rounds of a store: every trouble has its turn on each. `long`: a lull of a minute."""
    rng = random.Random(f"fleet:{seed}:{number}")
    names = list(TROUBLES)
    chosen = [names[(3 * turn + n + 3 * (seed - 1)) % len(names)] for n in range(3)]
    chosen += rng.choices(names, k=rng.choice((0, 1, 1, 2)))
    if long:
        chosen = [name for name in chosen if name != "lull"] + ["lull"]
    if render:
        at = 2 * (seed - 1) + (number - RENDER_EVERY if short else 2 * (number // RENDER_EVERY - 1))
        several = 1 if short else 2
        chosen = chosen[: several + 1] + [BROWSER_NAMES[(at + n) % len(BROWSER_NAMES)] for n in range(several)]
    rng.shuffle(chosen)
    return Plan(
        number=number,
        store=store,
        render=render,
        troubles=tuple(chosen),
        pauses_s=tuple(rng.uniform(0.2, 1.5) for _ in chosen),
        beats=rng.choice((1, 2)),
        lull_s=LONG_LULL_S if long else rng.uniform(6.0, 8.0),
    )


@dataclass(slots=True, kw_only=True)
class Round:
    """A round that is over."""

    plan: Plan
    done: list[str] = field(default_factory=list)
    found: Findings = field(default_factory=Findings)
    restarts: int = 0
    most_queued: int = 0
    most_begun: int = 0
    ending_s: float = 0.0
    #: lines of the logs; told, not counted
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    floods: list[str] = field(default_factory=list)
    #: processes that did not end
    left: list[str] = field(default_factory=list)
    #: why it did not finish; None: it did
    unfinished: str | None = None
    folder: Path | None = None

    @property
    def clean(self) -> bool:
        return self.unfinished is None and self.found.clean and not self.floods and not self.left

    def lines(self) -> list[str]:
        first = [self.unfinished] if self.unfinished else []
        said = [f"log: {line}" for line in self.errors]
        return first + [f"flood: {line}" for line in self.floods] + self.left + self.found.lines() + said


class Arena:
    """Where rounds take place: a PostgreSQL for all of them, and the baseline."""

    def __init__(self, folder: Path, seed: int, site: Site) -> None:
        self.folder, self.site = folder, site
        self.seed = seed
        self.postgres: PgServer | None = None
        #: with a browser and without, of undisturbed fleets; else of the first round that the generator finds clean
        self.baselines: dict[bool, Baseline] = {}

    def undisturbed(self, render: bool) -> float:
        """The same crawls in peace; how long they took."""
        plan = Plan(number=0, store="sqlite", troubles=(), pauses_s=(), beats=1, lull_s=0.0, render=render)
        result = self.round(plan)
        if not result.clean:
            raise SystemExit(f"Even in peace something is wrong ({result.folder}):\n" + "\n".join(result.lines()[:20]))
        return result.seconds

    def round(self, plan: Plan) -> Round:
        result = Round(plan=plan)
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix=f"fleet-{plan.number}-", dir=self.folder))
        result.folder = folder
        web_site = self._site(plan)
        (folder / "chaos.toml").write_text(SETTINGS + (site.RENDER_SETTINGS if plan.render else ""))
        rng = random.Random(f"fleet:{self.seed}:{plan.number}:play")
        database = self._database(plan, folder)
        with ExitStack() as stack:
            metronome = Metronome(folder / "stalls")
            stack.callback(metronome.close)
            web = stack.enter_context(web_site.start(folder / "access.log"))
            with (folder / "chaos.toml").open("a") as settings:
                settings.write(f'resolve = ["{web.resolve_rule}"]\n')
            troop = Troop(folder, database, beats=plan.beats, port=free_port(), render=plan.render)
            stack.callback(troop.close)
            scene = Scene(
                troop, Desk(troop.api_port, rng), orders(web_site, web_site.seeds(web)), rng, plan.lull_s,
                plan.kills_s,
            )  # fmt: skip
            try:
                _suffer(scene, plan, result)
            except (TimeoutError, AssertionError) as error:
                result.unfinished = f"{error or repr(error)}; see {folder}"
            result.restarts, result.floods, result.most_queued = troop.lives, scene.floods, scene.most_queued
            result.most_begun = scene.most_begun
            result.left = troop.end()
            result.errors, result.ending_s = troop.errors(), troop.ending_s
            if result.unfinished is None:
                web.requests()
                self._look(scene, metronome, result)
        if result.clean:
            database.drop()
        result.seconds = time.monotonic() - began
        return result

    def _site(self, plan: Plan) -> Site:
        return (SMALL_RENDERED if self.site is SMALL else RENDERED) if plan.render else self.site

    def _look(self, scene: Scene, metronome: Metronome, result: Round) -> None:
        try:
            web_site, render = self._site(result.plan), result.plan.render
            expected = self.baselines.get(render) or findings.baseline(scene.troop, scene.desk, web_site)
        except AssertionError as error:
            result.unfinished = str(error)
            return
        stopped = any(name.startswith(("child-stop", "render-stop", "still")) for name in result.done)
        result.found = findings.look(
            scene.troop, scene.desk, scene.orders, web_site, expected, metronome.stalls(), stopped=stopped
        )
        if result.clean:
            self.baselines[render] = expected

    def _database(self, plan: Plan, folder: Path) -> Database:
        if plan.store == "sqlite":
            return Sqlite(folder / "data" / "curtsy.sqlite")
        assert self.postgres is not None
        return Postgres(self.postgres, folder.name)


def _suffer(scene: Scene, plan: Plan, result: Round) -> None:
    troop, desk = scene.troop, scene.desk
    troop.start()
    assert until(desk.answers, 40), "the API does not answer"
    for order in scene.orders:
        if not (order.upload and "upload" in plan.troubles):
            desk.send(order)
    for name, pause_s in zip(plan.troubles, plan.pauses_s, strict=True):
        time.sleep(pause_s)
        result.done.append((TROUBLES | BROWSER_TROUBLES)[name](scene) + (" (all had ended)" if _ended(scene) else ""))
    if scene.uploading is not None:
        scene.uploading.result(PATIENCE_S)
    limit_s = RENDER_LIMIT_S if plan.render else LIMIT_S
    if not until(lambda: _ended(scene), limit_s):
        raise TimeoutError(f"after {limit_s:g} s there are {_states(scene)}")


def _states(scene: Scene) -> list[str]:
    return [state for (state,) in scene.troop.database.rows("SELECT state FROM crawls")]


def _ended(scene: Scene) -> bool:
    states = _states(scene)
    return len(states) >= len(scene.orders) and all(state == "finished" for state in states)
