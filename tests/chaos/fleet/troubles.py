"""What goes wrong: each trouble is done to a running fleet, and says what it did. What dies is started again."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import redis

from tests.chaos import browsers, server_troubles
from tests.chaos.fleet.orders import Desk, Order
from tests.chaos.fleet.troop import RENDERER, Troop, send, until
from tests.chaos.site import RENDER_SLOT_S, SLOT_S

#: workers that come back begin within this time
BACK_S = 15.0
#: and are watched for so long
RETURN_S = 3.0
#: in that time hosts become due some twelve times; three lanes, and as many late ones as there are seats
MOST_BEGUN = 60


class Scene:
    """A fleet, whoever sends it crawls, and what was seen meanwhile."""

    def __init__(
        self, troop: Troop, desk: Desk, orders: list[Order], rng: random.Random, lull_s: float, kills_s: float
    ) -> None:  # fmt: skip
        self.troop, self.desk, self.orders, self.rng = troop, desk, orders, rng
        #: how long all workers are away in `lull`
        self.lull_s = lull_s
        #: how long worker processes are killed in `kills`
        self.kills_s = kills_s
        #: an upload that goes on beside the troubles
        self.uploading: Future[None] | None = None
        #: more shifts than there are seats
        self.floods: list[str] = []
        #: the most that waited in a queue while no worker was there, over all lulls
        self.most_queued = 0
        #: the most shifts that ended in the seconds after a return
        self.most_begun = 0

    def order(self, name: str) -> Order:
        return next(order for order in self.orders if order.name == name)


Trouble = Callable[[Scene], str]


def _pick(scene: Scene, generation: int) -> list[int]:
    """One process of one worker."""
    pids = scene.rng.choice(scene.troop.workers()).generation(generation)
    return [scene.rng.choice(pids)] if pids else []


def _kill(pids: list[int], what: str) -> str:
    send(pids, signal.SIGKILL)
    return what if pids else f"{what}-missed"


def worker_kill(scene: Scene) -> str:
    """A whole machine: the command, Celery's parents, their children."""
    return _kill([process.pid for process in scene.rng.choice(scene.troop.workers()).family()], "worker-kill")


def parent_kill(scene: Scene) -> str:
    """Celery's parent alone: its children must not stay."""
    return _kill(_pick(scene, 1), "parent-kill")


def keeper_kill(scene: Scene) -> str:
    """The command alone: Celery must end with it."""
    return _kill(_pick(scene, 0), "keeper-kill")


def child_kill(scene: Scene) -> str:
    return _kill(_pick(scene, 2), "child-kill")


def children_kill(scene: Scene) -> str:
    """All children of all workers."""
    return _kill([pid for part in scene.troop.workers() for pid in part.generation(2)], "children-kill")


def child_stop(scene: Scene) -> str:
    """Stopped for longer than a slot, then let go on: whatever it believes to hold is gone."""
    pids = _pick(scene, 2)
    send(pids, signal.SIGSTOP)
    time.sleep(SLOT_S + scene.rng.uniform(0.5, 2.0))
    send(pids, signal.SIGCONT)
    return "child-stop" if pids else "child-stop-missed"


def beat_kill(scene: Scene) -> str:
    beat = scene.rng.choice(scene.troop.beats())
    pids = [process.pid for process in beat.family()]
    return _kill(pids if scene.rng.random() < 0.7 else pids[:1], "beat-kill")


def beat_stop(scene: Scene) -> str:
    """A Beat that stands still, and goes on with what it believed."""
    pids = [process.pid for process in scene.rng.choice(scene.troop.beats()).family()][1:]
    send(pids, signal.SIGSTOP)
    time.sleep(SLOT_S + scene.rng.uniform(0.5, 2.0))
    send(pids, signal.SIGCONT)
    return "beat-stop" if pids else "beat-stop-missed"


def api_kill(scene: Scene) -> str:
    """All of it, or one of its processes."""
    api = scene.troop.parts["api"]
    pids = [process.pid for process in api.family()]
    return _kill(pids if scene.rng.random() < 0.6 else pids[-1:], "api-kill")


def upload(scene: Scene) -> str:
    """The API is killed in the middle of an upload, which is sent again under its key, whatever happens meanwhile."""
    if scene.uploading is not None or "listed" in scene.desk.ids:
        return api_kill(scene)
    struck = threading.Event()
    pause_s = scene.rng.uniform(0.0, 0.5)

    def half_way() -> None:
        time.sleep(pause_s)
        send([process.pid for process in scene.troop.parts["api"].family()], signal.SIGKILL)
        struck.set()

    scene.uploading = Future()
    threading.Thread(target=_send, args=(scene, half_way), daemon=True).start()
    return "upload" if struck.wait(30) else "upload-missed"


def _send(scene: Scene, half_way: Callable[[], None]) -> None:
    assert scene.uploading is not None
    try:
        scene.desk.send(scene.order("listed"), half_way)
        scene.uploading.set_result(None)
    except Exception as error:
        scene.uploading.set_exception(error)


def valkey_kill(scene: Scene) -> str:
    """It comes back empty: frontier, broker, tickets, all gone."""
    scene.troop.valkey.kill9()
    scene.troop.valkey.forget_snapshot()
    time.sleep(scene.rng.uniform(0.0, 2.0))
    scene.troop.valkey.start()
    return "valkey-kill"


def snapshot(scene: Scene) -> str:
    """It comes back as it was some seconds ago, with the messages of then."""
    valkey = scene.troop.valkey
    valkey.snapshot()
    time.sleep(scene.rng.uniform(0.5, 2.5))
    valkey.kill9()
    time.sleep(scene.rng.uniform(0.0, 1.0))
    valkey.start()
    return "snapshot"


def flush(scene: Scene) -> str:
    try:
        scene.troop.broker().flushall()
    except redis.RedisError:
        return "flush-missed"
    return "flush"


def cut(scene: Scene) -> str:
    """Between one worker and Valkey, while requests are under way; sometimes it stays cut for seconds."""
    cable = scene.rng.choice(list(scene.troop.cables.values()))
    for _ in range(scene.rng.choice((1, 2, 4))):
        if scene.rng.random() < 0.6:
            cable.swallow(0.5)
        else:
            cable.cut()
        time.sleep(scene.rng.uniform(0.0, 0.3))
    if scene.rng.random() < 0.5:
        cable.down = True
        cable.cut()
        time.sleep(scene.rng.uniform(1.0, SLOT_S + 1.5))
        cable.down = False
    return "cut"


def still(scene: Scene) -> str:
    """Nothing gets through between one worker and Valkey, for longer than a slot; then all of it arrives."""
    cable = scene.rng.choice(list(scene.troop.cables.values()))
    cable.stand_still()
    time.sleep(scene.rng.uniform(0.5, SLOT_S + 3.0))
    cable.go_on()
    return "still"


def database(scene: Scene) -> str:
    return "db-" + scene.troop.database.hurt(scene.rng).split()[0]


def full(scene: Scene) -> str:
    return server_troubles.full(scene.troop.broker(), scene.rng)


def client_pause(scene: Scene) -> str:
    return server_troubles.client_pause(scene.troop.broker(), scene.rng)


def reload(scene: Scene) -> str:
    return server_troubles.reload(scene.troop.valkey, scene.rng)


def valkey_stop(scene: Scene) -> str:
    return server_troubles.stand_still(scene.troop.valkey.pids, scene.rng, "valkey-stop")


def database_stop(scene: Scene) -> str:
    return server_troubles.database_stop(scene.troop.database, scene.rng)


def read_only(scene: Scene) -> str:
    return server_troubles.read_only(scene.troop.database, scene.rng)


def backends(scene: Scene) -> str:
    return server_troubles.backends(scene.troop.database, scene.rng)


def kills(scene: Scene) -> str:
    """A process of a worker, or a whole worker, every 5 s: no URL may be blamed for it."""
    end = time.monotonic() + scene.kills_s
    while time.monotonic() < end:
        (worker_kill if scene.rng.random() < 0.3 else child_kill)(scene)
        time.sleep(min(5.0, max(0.0, end - time.monotonic())))
    return f"kills {scene.kills_s:.0f} s"


def lull(scene: Scene) -> str:
    """All workers away while work is due, then back: nothing has piled up, no flood follows."""
    troop = scene.troop
    for part in troop.workers():
        part.wanted = False
        send([process.pid for process in part.family()], signal.SIGKILL)
    most = _watched(scene, scene.lull_s, lambda: max(troop.queued().values()))
    scene.most_queued = max(scene.most_queued, most)
    if most > troop.seats:
        scene.floods.append(f"{most} shifts waited in a queue for {troop.seats} seats")
    before = troop.shifts()
    for part in troop.workers():
        part.start()
    until(lambda: troop.shifts() != before, BACK_S)
    running = _watched(scene, RETURN_S, troop.running)
    if running > troop.seats:
        scene.floods.append(f"{running} shifts ran on {troop.seats} seats after the return")
    began, late = (now - then for now, then in zip(troop.shifts(), before, strict=True))
    scene.most_begun = max(scene.most_begun, began)
    if late > len(troop.queues) * troop.seats or began > MOST_BEGUN:
        scene.floods.append(f"{began} shifts within {RETURN_S:g} s of the return, {late} of them late")
    return f"lull {scene.lull_s:.0f} s" if scene.lull_s >= 60 else "lull"


def _watched(scene: Scene, seconds: float, look: Callable[[], int]) -> int:
    """The largest that was seen in that time."""
    end = time.monotonic() + seconds
    most = 0
    while time.monotonic() < end:
        most = max(most, look())
        time.sleep(0.05)
    return most


def pause(scene: Scene) -> str:
    """A crawl is paused and resumed over HTTP, whatever else is broken meanwhile."""
    name = scene.rng.choice(sorted(scene.desk.ids))
    if not scene.desk.change(name, "pause"):
        return "pause-missed"
    time.sleep(scene.rng.uniform(0.2, 2.5))
    scene.desk.change(name, "resume")
    return "pause"


def _at_work(scene: Scene) -> bool:
    return browsers.at_work(scene.troop.folder, scene.rng)


def render_kill(scene: Scene) -> str:
    """kill -9 of the worker that has the browsers, with all its processes, in the middle of visits."""
    if not _at_work(scene):
        return "render-kill-missed"
    return _kill([process.pid for process in scene.troop.parts[RENDERER].family()], "render-kill")


def render_child_kill(scene: Scene) -> str:
    """One of its processes, or both: their browsers must not stay."""
    if not _at_work(scene):
        return "render-child-kill-missed"
    pids = scene.troop.parts[RENDERER].generation(2)
    return _kill(pids if scene.rng.random() < 0.5 else pids[:1], "render-child-kill")


def render_stop(scene: Scene) -> str:
    """Its processes stand still in the middle of visits for longer than their slots; the browsers go on."""
    pids = scene.troop.parts[RENDERER].generation(2) if _at_work(scene) else []
    send(pids, signal.SIGSTOP)
    time.sleep(RENDER_SLOT_S + scene.rng.uniform(0.5, 2.0) if pids else 0)
    send(pids, signal.SIGCONT)
    return "render-stop" if pids else "render-stop-missed"


def browser_kill(scene: Scene) -> str:
    """One browser, or all of them."""
    pids = browsers.mains(scene.troop.folder) if _at_work(scene) else []
    return _kill(pids if scene.rng.random() < 0.5 else pids[:1], "browser-kill")


def watcher_kill(scene: Scene) -> str:
    return _kill(browsers.watchers(scene.troop.folder)[:1] if _at_work(scene) else [], "watcher-kill")


def renderer_kill(scene: Scene) -> str:
    """The process of one page."""
    pids = browsers.renderers(scene.troop.folder) if _at_work(scene) else []
    return _kill([scene.rng.choice(pids)] if pids else [], "renderer-kill")


#: in rounds with a browser, beside the others
BROWSER_TROUBLES: dict[str, Trouble] = {
    "render-kill": render_kill,
    "browser-kill": browser_kill,
    "render-child-kill": render_child_kill,
    "watcher-kill": watcher_kill,
    "render-stop": render_stop,
    "renderer-kill": renderer_kill,
}
TROUBLES: dict[str, Trouble] = {
    "worker-kill": worker_kill,
    "flush": flush,
    "upload": upload,
    "cut": cut,
    "child-kill": child_kill,
    "valkey-kill": valkey_kill,
    "pause": pause,
    "database": database,
    "beat-kill": beat_kill,
    "still": still,
    "parent-kill": parent_kill,
    "snapshot": snapshot,
    "child-stop": child_stop,
    "api-kill": api_kill,
    "keeper-kill": keeper_kill,
    "lull": lull,
    "children-kill": children_kill,
    "beat-stop": beat_stop,
    "full": full,
    "read-only": read_only,
    "reload": reload,
    "valkey-stop": valkey_stop,
    "database-stop": database_stop,
    "client-pause": client_pause,
    "backends": backends,
    "kills": kills,
}
