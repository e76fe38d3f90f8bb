"""What goes wrong with the servers while they run: full, read-only, stopped, paused, back in time."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import closing

import psutil
import redis

from tests.chaos.parts import Database, Valkey
from tests.chaos.site import SLOT_S

#: how long a server is full, refuses or stands still: longer than a slot, a lease and the patience of a connection
LONG_S = (SLOT_S + 1.0, 10.0)


def full(client: redis.Redis, rng: random.Random) -> str:
    """Valkey has no memory left for some seconds."""
    with closing(client):
        try:
            client.config_set("maxmemory", 1)
            time.sleep(rng.uniform(*LONG_S))
            client.config_set("maxmemory", 0)
        except redis.RedisError:
            return "full-missed"
    return "full"


def client_pause(client: redis.Redis, rng: random.Random) -> str:
    """Valkey takes commands and answers none of them for some seconds; then it carries all of them out."""
    seconds = rng.uniform(*LONG_S)
    with closing(client):
        try:
            client.execute_command("CLIENT", "PAUSE", int(seconds * 1000), "ALL")
        except redis.RedisError:
            return "client-pause-missed"
    time.sleep(seconds)
    return "client-pause"


def reload(valkey: Valkey, rng: random.Random) -> str:
    """The state of some seconds ago is loaded into the running server: its run_id stays."""
    valkey.snapshot()
    time.sleep(rng.uniform(0.5, 2.5))
    with closing(valkey.client()) as client:
        client.execute_command("DEBUG", "RELOAD", "NOSAVE")
    return "reload"


def stand_still(pids: list[int], rng: random.Random, what: str) -> str:
    """SIGSTOP of a server, then SIGCONT: what was sent to it meanwhile arrives late."""
    if not pids:
        return f"{what}-missed"
    _send(pids, signal.SIGSTOP)
    time.sleep(rng.uniform(*LONG_S))
    _send(pids, signal.SIGCONT)
    return what


def database_stop(database: Database, rng: random.Random) -> str:
    pid = database.pid
    if pid is None:
        return "db-" + database.hurt(rng).split()[0]
    family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    return stand_still(family, rng, "database-stop")


def read_only(database: Database, rng: random.Random) -> str:
    """The database answers questions and refuses changes."""
    return "db-" + database.refuse(rng.uniform(*LONG_S)).split()[0]


def backends(database: Database, rng: random.Random) -> str:
    """Connections of the database are ended by the server, one after another."""
    for _ in range(rng.randint(3, 8)):
        database.end_connection(rng)
        time.sleep(rng.uniform(0.0, 0.7))
    return "backends"


def _send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
