"""A separate process that reads files, so that a file which crashes or blocks a reader ends only that process.

`Documents` starts it for the first file, restarts it after it has ended, and replaces it after 200 files. Any thread
may use it, one file at a time. The process reads requests from standard input: a line of JSON, `{"kind", "type",
"bytes", "limits"}`, then the file. It answers each request with a line of JSON and the boxes (`wire.py`), or if
`picture` numbers a page, with a line and its picture. The kernel kills it when a file exceeds its CPU time, and the
parent when no answer comes. It exits at end of input.
"""

from __future__ import annotations

import atexit
import json
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import IO, Any, TypeVar

from curtsy.content.documents.model import Boxes, FileText, Limits, Problem
from curtsy.content.documents.wire import box_bytes, from_wire, to_wire
from curtsy.core.child_process import ChildProcess
from curtsy.core.observe import count, log
from curtsy.core.settings import Settings

#: files per process: a new process frees what readers leak
_MOST_FILES = 200
#: the text in JSON, twice (text and Markdown), with escapes
_LINE_BYTES_PER_CHARACTER = 16
_LINE_BYTES = 16 << 20
_MOST_BOX_BYTES = 256 << 20
_MOST_PICTURE_BYTES = 16 << 20
#: the kernel ends a process that exceeds its CPU time with this signal
_OVERTIME = signal.SIGPROF
#: PDFium and Python exit with one of these signals when memory runs out
_NO_MEMORY = frozenset((signal.SIGABRT, signal.SIGILL, signal.SIGTRAP))

T = TypeVar("T")
#: reads an answer from the process; None if it is incomplete
Receive = Callable[[IO[bytes], Limits], T | None]

_NO_TEXT: dict[str, Any] = {
    "text": "",
    "markdown": "",
    "parts": (),
    "headings": (),
    "tables": (),
    "page_sizes": (),
    "boxes": Boxes(),
}


def limits_of(settings: Settings) -> Limits:
    return Limits(
        seconds=settings.document_timeout_s, memory_bytes=int(settings.document_reader_mb * 1_000_000),
        pages=settings.max_document_pages, ocr=settings.document_ocr, ocr_seconds=settings.document_ocr_timeout_s,
    )  # fmt: skip


class Documents:
    """The reading process of this process. After a fork, the child starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child = ChildProcess("curtsy.services.document_process", grace_s=0.5, quiet=True)
        #: abort event of the file that is being read
        self._stop: threading.Event | None = None

    def read(self, kind: str, body: bytes, content_type: str | None = None, limits: Limits | None = None) -> FileText:
        """The text of a file of that kind (`sniff.kind_of`). `problem` says what is wrong with it; nothing raises."""
        return self._read({"kind": kind, "type": content_type}, body, limits or Limits())

    def facts(
        self, kind: str, body: bytes, content_type: str | None, limits: Limits, stop: threading.Event | None = None
    ) -> FileText:
        """As `read`, without the text and its positions. `stop` ends it early (`abort`).

        Of a scanned document, only one page is recognized: enough for its title, and to know that it has text.
        """
        limits = replace(limits, ocr_pages=1)
        return self._read({"kind": kind, "type": content_type, "facts": True}, body, limits, stop)

    def picture(self, body: bytes, number: int, limits: Limits) -> bytes | None:
        """A page of a PDF as PNG, of limited size; None without such a page, or if drawing it exceeds a limit."""
        found, _ = self._ask({"kind": "pdf", "picture": number}, body, limits, None, _picture)
        return found or None

    def abort(self, stop: threading.Event) -> None:
        """Ends the call that has this event, from another thread."""
        stop.set()
        if self._stop is stop:
            self._child.kill()

    def _read(
        self, asked: dict[str, Any], body: bytes, limits: Limits, stop: threading.Event | None = None
    ) -> FileText:  # fmt: skip
        found, problem = self._ask(asked, body, limits, stop, _answer)
        return FileText(asked["kind"], problem=problem, truncated=True) if found is None else found

    def _ask(
        self, asked: dict[str, Any], body: bytes, limits: Limits, stop: threading.Event | None, receive: Receive[T]
    ) -> tuple[T | None, Problem]:
        """The answer, or the reason why no answer arrived."""
        line = json.dumps({**asked, "bytes": len(body), "limits": asdict(limits)}).encode() + b"\n"
        problem: Problem = "timeout"
        with self._lock:
            self._stop = stop
            for _ in range(2):
                if stop is not None and stop.is_set():
                    return None, "timeout"
                # Wall time may be longer than CPU time, because the machine may be busy. A process that takes much
                # longer hangs.
                wait_s = 10 + 4 * limits.most_seconds
                answer = self._child.ask(line, body, wait_s, lambda taken: receive(taken, limits))
                if answer is not None:
                    if self._child.answers >= _MOST_FILES:
                        self._child.end()
                    return answer, ""
                problem = _problem_of(self._child.end(), self._child.is_late)
                if problem != "malformed":
                    break
                count("document_process_died")  # an earlier file may have killed it: try once more in a new process
        return None, problem

    @property
    def process_id(self) -> int | None:
        """The id of the current process, if one runs."""
        return self._child.id

    def close(self) -> None:
        """Ends the process, if one was started here."""
        with self._lock:
            self._child.end()


documents = Documents()
atexit.register(documents.close)


def _answer(taken: IO[bytes], limits: Limits) -> FileText | None:
    line = taken.readline(_LINE_BYTES + _LINE_BYTES_PER_CHARACTER * limits.characters)
    if not line.endswith(b"\n"):
        return None
    if line.startswith(b'{"failed"'):
        failed = json.loads(line)
        log("document_reader_failed", level="warning", kind=failed["kind"], error=failed["failed"])
        return FileText(str(failed["kind"]), problem="malformed", truncated=True)
    size = box_bytes(line)
    packed = taken.read(min(size, _MOST_BOX_BYTES)) if size else b""
    return from_wire(line, packed) if len(packed) == size else None


def _picture(taken: IO[bytes], limits: Limits) -> bytes | None:
    """Empty if the process has no picture."""
    line = taken.readline(_LINE_BYTES)
    if not line.endswith(b"\n"):
        return None
    size = int(json.loads(line).get("picture", 0))
    packed = taken.read(min(size, _MOST_PICTURE_BYTES)) if size else b""
    return packed if len(packed) == size else None


def _problem_of(ended: int | None, late: bool) -> Problem:
    if late or ended == -_OVERTIME:
        return "timeout"
    return "memory" if ended is not None and -ended in _NO_MEMORY else "malformed"


def _restrict() -> None:
    """The process opens no file for writing, and few at a time. It leaves no core dump."""
    for what, most in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 64)):
        resource.setrlimit(what, (most, most))


def _done(request: dict[str, Any], body: bytes) -> bytes:
    from curtsy.content.documents.reading import read_document  # start-up: the readers, for the child process only

    limits = Limits(**request["limits"])
    try:
        with _limited(limits):
            if "picture" in request:
                return _drawn(body, request["picture"])
            read = read_document(request["kind"], body, limits, request["type"])
            return to_wire(replace(read, **_NO_TEXT) if request.get("facts") else read)
    except MemoryError:
        return to_wire(FileText(request["kind"], problem="memory", truncated=True))
    except Exception as error:  # a defect of a reader: the file is reported as malformed, and the parent logs the error
        return json.dumps({"failed": repr(error)[:1000], "kind": request["kind"]}).encode() + b"\n"


def _drawn(body: bytes, number: int) -> bytes:
    from curtsy.content.documents.pictures import picture_of  # start-up: PDFium, for the child process only

    try:
        picture = picture_of(body, number)
    except ValueError:
        picture = b""
    return json.dumps({"picture": len(picture)}).encode() + b"\n" + picture


@contextmanager
def _limited(limits: Limits) -> Iterator[None]:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    signal.setitimer(signal.ITIMER_PROF, limits.most_seconds)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        signal.setitimer(signal.ITIMER_PROF, 0)


def main() -> None:
    _restrict()
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)  # its parent ends it
    given, taken = sys.stdin.buffer, sys.stdout.buffer
    while line := given.readline():
        request = json.loads(line)
        body = given.read(request["bytes"])
        taken.write(_done(request, body))
        taken.flush()


if __name__ == "__main__":
    main()
