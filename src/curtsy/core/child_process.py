"""A Python module that runs in a process of its own and answers requests through pipes.

The process is started for the first request, and again for the next one after it has ended. It must exit at the end of
its standard input.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, TypeVar, cast

_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "VIRTUAL_ENV")

T = TypeVar("T")


class ChildProcess:
    """The process of one module. After a fork, the child of the fork starts its own.

    Not for several threads at once, except `kill`. `environment`: names of further variables that the process gets.
    `grace_s`: how long a process whose pipes are closed may take to end by itself.
    """

    def __init__(self, module: str, *, grace_s: float, environment: tuple[str, ...] = (), quiet: bool = False) -> None:
        self._module = module
        self._grace_s = grace_s
        self._environment = (*_ENVIRONMENT, *environment)
        self._errors = subprocess.DEVNULL if quiet else None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        #: answers of the current process
        self.answers = 0
        #: the last request was ended because its answer took too long
        self.is_late = False

    def start(self) -> int:
        """The id of the process, which is started if none runs."""
        return self._started().pid

    @property
    def id(self) -> int | None:
        """The id of the current process, if one runs."""
        return None if self._process is None else self._process.pid

    def ask(self, line: bytes, body: bytes, wait_s: float, receive: Callable[[IO[bytes]], T | None]) -> T | None:
        """What `receive` reads from the process after it got `line` and `body`. None: no complete answer arrived; call
        `end`.
        """
        process = self._started()
        self.is_late = False
        waiting = threading.Timer(wait_s, self._give_up, (process,))
        waiting.start()
        try:
            given, taken = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
            given.write(line)
            given.write(body)
            given.flush()
            answer = receive(taken)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        finally:
            waiting.cancel()
        self.answers += answer is not None
        return answer

    def kill(self) -> None:
        """End the current request early, from another thread."""
        process = self._process
        if process is not None and self._owner == os.getpid():
            process.kill()

    def end(self) -> int | None:
        """End the process if this process started one; returns its exit status."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return None
        for pipe in (process.stdin, process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass
        try:
            return process.wait(self._grace_s)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _give_up(self, process: subprocess.Popen[bytes]) -> None:
        self.is_late = True
        process.kill()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():
            self._process = None
        if self._process is not None and self._process.poll() is not None:
            self.end()
        if self._process is None:
            # -P: it must not import modules of the working directory. It gets no secrets from the environment.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", self._module],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                env={name: os.environ[name] for name in self._environment if name in os.environ},
            )  # fmt: skip
            self._owner, self.answers = os.getpid(), 0
        return self._process
