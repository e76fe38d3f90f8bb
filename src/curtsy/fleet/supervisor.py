"""`curtsy up`: every part of a fleet on one machine, each a child process; a part that exits is started again.

Each part runs in its own session, so Ctrl-C reaches this process only, and the process group of a killed part can be
cleaned up. The kernel sends the parts SIGTERM when this process is gone, even if it was killed. The embedded Valkey is
not a child: this process holds a share in it, restarts it, and gives its share back last.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from curtsy.core.errors import CurtsyError, UsageError
from curtsy.core.file_locks import try_lock
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.services import backends
from curtsy.services.valkey import EmbeddedValkey
from curtsy.store.engine import Store

#: pauses before a restart: the first, doubled each time up to the longest
FIRST_S, LONGEST_S = 0.5, 30.0
#: a part that ran this long started well: its next pause is the first one again
STABLE_S = 60.0
#: parts that send work have this long to exit before workers are asked to stop
SENDERS_S = 4.0
#: a worker commits after it has drained
AFTER_DRAIN_S = 6.0
_CHECK_S = 1.0
_START_CHECK_S = 0.1
_READY_S = 3.0
_VALKEY_S = 3.0

_STOP = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_SIGNALS = _STOP | {signal.SIGCHLD}
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    command: tuple[str, ...]
    #: a worker: parts that send work are stopped before it
    works: bool = False


def pause_after(before_s: float | None, ran_s: float) -> float:
    """The pause before the restart of a part that ran for `ran_s`; `before_s` is its previous pause."""
    if before_s is None or ran_s >= STABLE_S:
        return FIRST_S
    return min(LONGEST_S, before_s * 2)


class Child:
    """A part and its current process, if it has one."""

    def __init__(self, part: Part, environment: dict[str, str]) -> None:
        self.part = part
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._group: int | None = None
        self._started = 0.0
        self._pause_s: float | None = None
        #: when to start it, or start it again
        self._due = 0.0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def check(self) -> float:
        """Start it if it is due, or record its exit; returns the seconds until the next check."""
        now = time.monotonic()
        if self._process is not None and self._process.poll() is not None:
            self._ended(self._process.returncode, now)
        if self._process is not None:
            return _CHECK_S
        if now < self._due:
            return self._due - now
        self._start(now)
        return _CHECK_S

    def _start(self, now: float) -> None:
        self._started = now
        parent = os.getpid()
        try:
            self._process = subprocess.Popen(
                self.part.command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=2,  # standard output is for the line that says that everything is ready
                start_new_session=True,
                preexec_fn=lambda: _die_with_parent(parent),  # noqa: PLW1509
            )
        except OSError as error:  # out of processes or memory, for now
            log("part_not_started", level="error", name=self.part.name, error=str(error))
            self._ended(None, now)
            return
        self._group = self._process.pid
        if self._pause_s is not None:
            log("part_restarted", level="warning", name=self.part.name, pid=self._process.pid, pause_s=self._pause_s)

    def _ended(self, code: int | None, now: float) -> None:
        self.sweep()
        self._process = None
        ran_s = now - self._started
        self._pause_s = pause_after(self._pause_s, ran_s)
        self._due = now + self._pause_s
        log("part_died", level="error", name=self.part.name, code=code, ran_s=round(ran_s, 1), pause_s=self._pause_s)

    def send(self, what: signal.Signals) -> None:
        if self._process is not None and self.alive:
            self._process.send_signal(what)

    def sweep(self) -> None:
        """Kill what is left of its process group. Its leases expire."""
        group, self._group = self._group, None
        if group is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def wait(self) -> None:
        if self._process is not None:
            self._process.wait()


def _die_with_parent(parent: int) -> None:
    """In the child: unblock signals, and ask the kernel for SIGTERM when the parent dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if os.getppid() != parent:  # it died before the call
        os._exit(1)


class Supervisor:
    """All parts of one folder."""

    def __init__(self, settings: Settings, parts: Iterable[Part], environment: dict[str, str]) -> None:
        self._settings = settings
        self._children = [Child(part, environment) for part in parts]
        self._share: EmbeddedValkey | None = None
        self._valkey: int | None = None
        self._ready = False

    def run(self, on_ready: Callable[[], None]) -> None:
        """Run until a signal asks to stop. `on_ready` is called once, when the API answers that it is ready."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        Store.open(
            self._settings.effective_store_url
        ).close()  # one process migrates; an unavailable store is an error here
        if self._settings.frontier_url is None:
            self._share = EmbeddedValkey.enter(self._settings.data_dir)
            self._valkey = self._share.pid
        try:
            self._supervise(on_ready)
            gently = self._end()
        finally:
            self._kill()
        self._leave(gently)

    def _supervise(self, on_ready: Callable[[], None]) -> None:
        checked = time.monotonic()
        while True:
            pause_s = min([child.check() for child in self._children])
            if not self._ready and self._answers():
                self._ready = True
                on_ready()
            received = _wait_for_signal(min(pause_s, _CHECK_S if self._ready else _START_CHECK_S))
            if received in _STOP:
                return
            if time.monotonic() - checked >= _CHECK_S:
                self._check_valkey()
                checked = time.monotonic()

    def _answers(self) -> bool:
        given = self._settings
        return is_ready(reachable(given.api_host), given.api_port)

    def _check_valkey(self) -> None:
        """Restart it if it died; a worker may have done so already."""
        if self._share is None:
            return
        pid = self._share.pid
        if pid is None:
            try:
                self._share.ensure(_VALKEY_S)
            except CurtsyError as error:
                log("part_unavailable", level="error", name="valkey", error=str(error))
                return
            pid = self._share.pid
        if pid is not None and pid != self._valkey:
            log("part_died", level="error", name="valkey", code=None, pause_s=0.0)
            log("part_restarted", level="warning", name="valkey", pid=pid, pause_s=0.0)
            self._valkey = pid

    def _end(self) -> bool:
        """Stop senders, then workers. False after a second signal, or if some did not exit in time."""
        log("stopping")
        senders = [child for child in self._children if not child.part.works]
        workers = [child for child in self._children if child.part.works]
        for child in senders:
            child.send(signal.SIGTERM)
        if _wait(senders, SENDERS_S) is None:
            return False
        for child in workers:
            child.send(signal.SIGTERM)
        return bool(_wait(self._children, self._settings.drain_s + AFTER_DRAIN_S))

    def _kill(self) -> None:
        for child in self._children:
            child.sweep()
            child.wait()

    def _leave(self, gently: bool) -> None:
        """Give back the share in the server. If all parts exited well, the last process writes the clean mark."""
        if self._share is None:
            return
        if not gently:
            self._share.leave()
            return
        try:
            asyncio.run(_leave(self._settings, self._share))
        except CurtsyError as error:
            log("folder_not_left", level="warning", error=str(error))


async def _leave(settings: Settings, share: EmbeddedValkey) -> None:
    built = backends.build(settings)
    share.abandon()
    await built.close()


def _wait_for_signal(within_s: float) -> signal.Signals | None:
    received = signal.sigtimedwait(_SIGNALS, within_s)
    return None if received is None else signal.Signals(received.si_signo)


def _wait(children: list[Child], within_s: float) -> bool | None:
    """Whether all have exited by then; None after another signal to stop."""
    until = time.monotonic() + within_s
    while any(child.alive for child in children):
        left_s = until - time.monotonic()
        if left_s <= 0:
            return False
        if _wait_for_signal(min(left_s, _CHECK_S)) in _STOP:
            return None
    return True


class only_one:
    """The lock of the one `curtsy up` of a folder. The kernel releases it when the process dies."""

    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        self._data_dir = data_dir
        self._file = (data_dir / "up.lock").open("a+")

    def __enter__(self) -> None:
        if not try_lock(self._file.fileno()):
            self._file.seek(0)
            pid = self._file.read().strip()
            self._file.close()
            who = f" (process {pid})" if pid else ""
            raise UsageError(
                f"`curtsy up` already runs in {self._data_dir}{who}. Stop it, or choose another --data-dir."
            )
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def __exit__(self, *_: object) -> None:
        self._file.close()


def free_port(host: str, port: int) -> int:
    """`port`, or any free port for 0. Raises UsageError if the port is in use."""
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as found:
            return int(found.getsockname()[1])
    except OSError as error:
        raise UsageError(f"Cannot listen on {host}:{port}: {error.strerror}. Choose another --port.") from error


def reachable(host: str) -> str:
    """Where this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)


def is_ready(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=_READY_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
