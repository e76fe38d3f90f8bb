"""A separate process that reads heavy pages, so that a page which blocks the HTML parser ends only that process.

`HeavyPageReader` starts it for the first heavy page and restarts it after it has ended. Any thread may use it, page by
page. The process, reader_child.py, reads requests from standard input: a line of JSON,
`{"task", "seconds", "bytes", ...}`, then the body. It answers each request with a line of JSON. The kernel kills it
when a request exceeds its CPU time. It exits at end of input.
"""

from __future__ import annotations

import atexit
import json
import signal
import threading
from typing import IO, Any

from curtsy.content.reading import ParseTimeout, Reading
from curtsy.core.child_process import ChildProcess
from curtsy.core.observe import count

#: a process that takes longer was suspended, or the machine sleeps
_MAX_WAIT_S = 120.0


class HeavyPageReader:
    """The reading process of this process. After a fork, the child starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child = ChildProcess(
            "curtsy.services.reader_child", grace_s=0.2, environment=("CURTSY_SLOW_PAGE", "CURTSY_READER")
        )

    def read(
        self, seconds: float, body: bytes, content_type: str | None, url: str, agent: str, auto_render: bool
    ) -> Reading:
        """As `reading.read`; ParseTimeout if it takes too long, or if the page kills the process twice."""
        given = {"task": "read", "type": content_type, "url": url, "agent": agent, "auto_render": auto_render}
        return Reading(*self._ask(seconds, given, body))

    def check(self, seconds: float, body: bytes, content_type: str | None, url: str) -> None:
        """Raises ParseTimeout if the page's text and structured data cannot be read in that time."""
        self._ask(seconds, {"task": "check", "type": content_type, "url": url}, body)

    def close(self) -> None:
        """Ends the process, if one was started here."""
        with self._lock:
            self._child.end()

    def _ask(self, seconds: float, given: dict[str, Any], body: bytes) -> Any:
        line = json.dumps({**given, "seconds": seconds, "bytes": len(body)}).encode() + b"\n"
        with self._lock:
            for _ in range(2):
                answer = self._child.ask(line, body, _MAX_WAIT_S, _line)
                if answer is not None:
                    return json.loads(answer)
                if self._child.end() == -signal.SIGVTALRM:
                    break
                count("reading_process_died")
        raise ParseTimeout


def _line(taken: IO[bytes]) -> bytes | None:
    line = taken.readline()
    return line if line.endswith(b"\n") else None


heavy_page_reader = HeavyPageReader()
atexit.register(heavy_page_reader.close)
