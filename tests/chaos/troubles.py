"""What goes wrong: each trouble is done to a running crawl, and says what it did."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import redis

from curtsy.core.failpoints import POINTS
from tests.chaos import browsers, server_troubles
from tests.chaos.crawler import Crawler
from tests.chaos.site import RENDER_SLOT_S, SLOT_S

Trouble = Callable[[Crawler, random.Random], str]


def kill(crawler: Crawler, rng: random.Random) -> str:
    """kill -9 of the crawl, or of one of its processes."""
    pids = crawler.some(rng)
    crawler.signal(pids, signal.SIGKILL)
    crawler.pause(0.2)
    return "kill"


def stop(crawler: Crawler, rng: random.Random) -> str:
    """Stopped for longer than a slot, then let go on: whatever it believes to hold is gone."""
    pids = crawler.some(rng)
    crawler.signal(pids, signal.SIGSTOP)
    time.sleep(SLOT_S + rng.uniform(0.5, 2.0))
    crawler.signal(pids, signal.SIGCONT)
    return "stop"


def valkey_kill(crawler: Crawler, rng: random.Random) -> str:
    """kill -9 of Valkey; it comes back empty, by the crawl itself or by us."""
    if crawler.valkey is None:
        pid = crawler.embedded_pid()
        if pid is None:
            return "valkey-kill-missed"
        os.kill(pid, signal.SIGKILL)
        return "valkey-kill"
    crawler.valkey.kill9()
    crawler.valkey.forget_snapshot()
    time.sleep(rng.uniform(0.0, 2.0))
    crawler.valkey.start()
    return "valkey-kill"


def snapshot(crawler: Crawler, rng: random.Random) -> str:
    """Valkey comes back as it was some seconds ago."""
    assert crawler.valkey is not None
    crawler.valkey.snapshot()
    time.sleep(rng.uniform(0.5, 2.5))
    crawler.valkey.kill9()
    time.sleep(rng.uniform(0.0, 1.0))
    crawler.valkey.start()
    return "snapshot"


def flush(crawler: Crawler, rng: random.Random) -> str:
    return "flush" if crawler.flush() else "flush-missed"


def cut(crawler: Crawler, rng: random.Random) -> str:
    """Connections to Valkey break while requests are under way; often a reply is lost with them."""
    if crawler.cable is None:
        return _client_kill(crawler)
    for _ in range(rng.choice((1, 2, 4))):
        if rng.random() < 0.7:
            crawler.cable.swallow()
        else:
            crawler.cable.cut()
        time.sleep(rng.uniform(0.0, 0.3))
    return "cut"


def _client_kill(crawler: Crawler) -> str:
    client = crawler.frontier()
    if client is None:
        return "cut-missed"
    with closing(client):
        try:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        except redis.RedisError:
            return "cut-missed"
    return "cut"


def database(crawler: Crawler, rng: random.Random) -> str:
    return "db-" + crawler.database.hurt(rng).split()[0]


def full(crawler: Crawler, rng: random.Random) -> str:
    client = crawler.frontier()
    return server_troubles.full(client, rng) if client is not None else "full-missed"


def client_pause(crawler: Crawler, rng: random.Random) -> str:
    client = crawler.frontier()
    return server_troubles.client_pause(client, rng) if client is not None else "client-pause-missed"


def reload(crawler: Crawler, rng: random.Random) -> str:
    assert crawler.valkey is not None
    return server_troubles.reload(crawler.valkey, rng)


def valkey_stop(crawler: Crawler, rng: random.Random) -> str:
    pid = crawler.embedded_pid() if crawler.valkey is None else None
    pids = crawler.valkey.pids if crawler.valkey is not None else [pid] if pid is not None else []
    return server_troubles.stand_still(pids, rng, "valkey-stop")


def database_stop(crawler: Crawler, rng: random.Random) -> str:
    return server_troubles.database_stop(crawler.database, rng)


def read_only(crawler: Crawler, rng: random.Random) -> str:
    return server_troubles.read_only(crawler.database, rng)


def backends(crawler: Crawler, rng: random.Random) -> str:
    return server_troubles.backends(crawler.database, rng)


def kills(crawler: Crawler, rng: random.Random) -> str:
    """One kill -9 after another: no URL may be blamed for them."""
    for n in range(rng.randint(3, 5)):
        if not crawler.keep_alive():
            return f"{n} kills"
        crawler.signal(crawler.some(rng), signal.SIGKILL)
        crawler.pause(0.2)
        if not crawler.keep_alive():
            return f"{n + 1} kills"
        crawler.pause(rng.uniform(1.0, 4.0))
    return "kills"


def disk(crawler: Crawler, rng: random.Random) -> str:
    """No byte more for the segments, for some seconds."""
    assert crawler.disk is not None
    pids = crawler.pids()
    crawler.disk.fill(pids)
    crawler.pause(rng.uniform(1.0, 3.0))
    crawler.disk.free(pids)
    return "disk"


def visit_kill(crawler: Crawler, rng: random.Random) -> str:
    """kill -9 of the crawl while its browser shows pages."""
    if not browsers.at_work(crawler.folder, rng, crawler.keep_alive):
        return "visit-kill-missed"
    crawler.signal(crawler.pids(), signal.SIGKILL)
    crawler.pause(0.2)
    return "visit-kill"


def visit_stop(crawler: Crawler, rng: random.Random) -> str:
    """The crawl stands still in the middle of visits, for longer than their slots; its browser goes on."""
    if not browsers.at_work(crawler.folder, rng, crawler.keep_alive):
        return "visit-stop-missed"
    pids = crawler.pids()
    crawler.signal(pids, signal.SIGSTOP)
    time.sleep(RENDER_SLOT_S + rng.uniform(0.5, 2.0))
    crawler.signal(pids, signal.SIGCONT)
    return "visit-stop"


def _browser_trouble(name: str, find: Callable[[Path], list[int]]) -> Trouble:
    def strike(crawler: Crawler, rng: random.Random) -> str:
        if not browsers.at_work(crawler.folder, rng, crawler.keep_alive) or not (pids := find(crawler.folder)):
            return f"{name}-missed"
        browsers.send([rng.choice(pids)], signal.SIGKILL)
        return name

    return strike


def browser_stop(crawler: Crawler, rng: random.Random) -> str:
    """The browser hangs, for longer than a visit may last."""
    if not browsers.at_work(crawler.folder, rng, crawler.keep_alive):
        return "browser-stop-missed"
    pids = browsers.mains(crawler.folder)
    browsers.send(pids, signal.SIGSTOP)
    crawler.pause(RENDER_SLOT_S)
    browsers.send(pids, signal.SIGCONT)
    return "browser-stop"


#: in rounds with a browser, beside the others
BROWSER_TROUBLES: dict[str, Trouble] = {
    "visit-kill": visit_kill,
    "browser-kill": _browser_trouble("browser-kill", browsers.mains),
    "watcher-kill": _browser_trouble("watcher-kill", browsers.watchers),
    "visit-stop": visit_stop,
    "renderer-kill": _browser_trouble("renderer-kill", browsers.renderers),
    "browser-stop": browser_stop,
}
TROUBLES: dict[str, Trouble] = {
    "kill": kill,
    "stop": stop,
    "valkey-kill": valkey_kill,
    "snapshot": snapshot,
    "flush": flush,
    "cut": cut,
    "database": database,
    "disk": disk,
    "full": full,
    "read-only": read_only,
    "reload": reload,
    "valkey-stop": valkey_stop,
    "database-stop": database_stop,
    "client-pause": client_pause,
    "backends": backends,
    "kills": kills,
}
#: these make a new epoch
LOSSES = frozenset({"valkey-kill", "snapshot", "flush", "reload"})
#: a point is passed at most so often before the stop, so that it comes early in a life
_NTH = {"release.before": 40, "release.after": 40, "scan.read": 12, "reap.written": 1}


def nth(point: str, rng: random.Random) -> int:
    assert point in POINTS
    if point.startswith("rebuild."):
        return 1
    return rng.randint(1, _NTH.get(point, 5))
