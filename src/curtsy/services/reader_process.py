"""A separate process that reads heavy pages, so that a page which blocks the HTML parser ends only that process.

`HeavyPageReader` starts it for the first heavy page and restarts it after it has ended. Any thread may use it, page by
page. The process, reader_child.py, reads requests from standard input: a line of JSON,
`{"task", "seconds", "bytes", ...}`, then the body. It answers each request with a line of JSON. The kernel kills it
when a request exceeds its CPU time. It exits at end of input.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from typing import IO, Any, cast

from curtsy.content.reading import ParseTimeout, Reading
from curtsy.core.observe import count

_ENVIRONMENT = (
    "PATH", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CURTSY_SLOW_PAGE",
    "CURTSY_READER",
)  # fmt: skip
#: a process that takes longer was suspended, or the machine sleeps
_MAX_WAIT_S = 120.0


class HeavyPageReader:
    """The reading process of this process. After a fork, the child starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def read(
        self, seconds: float, body: bytes, content_type: str | None, url: str, agent: str, auto_render: bool
    ) -> Reading:
        """As `reading.read`; ParseTimeout if it takes too long, or if the page kills the process twice."""
        given = {"task": "read", "type": content_type, "url": url, "agent": agent, "auto_render": auto_render}
        return Reading(*self._ask(seconds, given, body))

    def check(self, seconds: float, body: bytes, content_type: str | None, url: str) -> None:
        """Whether the page's text and structured data can be read in that time; ParseTimeout if not."""
        self._ask(seconds, {"task": "check", "type": content_type, "url": url}, body)

    def close(self) -> None:
        """Ends the process, if one was started here."""
        with self._lock:
            self._end()

    def _ask(self, seconds: float, given: dict[str, Any], body: bytes) -> Any:
        line = json.dumps({**given, "seconds": seconds, "bytes": len(body)}).encode() + b"\n"
        with self._lock:
            for _ in range(2):
                answer = self._exchange(line, body)
                if answer.endswith(b"\n"):
                    return json.loads(answer)
                if self._end() == -signal.SIGVTALRM:
                    break
                count("reading_process_died")
        raise ParseTimeout

    def _exchange(self, line: bytes, body: bytes) -> bytes:
        child = self._running()
        waiting = threading.Timer(_MAX_WAIT_S, child.kill)
        waiting.start()
        try:
            given, taken = cast(IO[bytes], child.stdin), cast(IO[bytes], child.stdout)
            given.write(line)
            given.write(body)
            given.flush()
            return taken.readline()
        except OSError:
            return b""
        finally:
            waiting.cancel()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():
            self._child = None
        if self._child is None:
            # -P: it must not import modules of the working directory. It gets no secrets from the environment.
            command = [sys.executable, "-P", "-m", "curtsy.services.reader_child"]
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            )  # fmt: skip
            self._owner = os.getpid()
        return self._child

    def _end(self) -> int | None:
        """End the process if it still runs; returns its exit status."""
        child, self._child = self._child, None
        if child is None or self._owner != os.getpid():
            return None
        for pipe in (child.stdin, child.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass
        try:
            return child.wait(0.2)  # it may just be ending
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()


heavy_page_reader = HeavyPageReader()
atexit.register(heavy_page_reader.close)
