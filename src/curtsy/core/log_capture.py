"""Turns everything that a process of a fleet writes into JSON log lines: lines of Python's `logging` (Celery, kombu,
asyncio), warnings, tracebacks, and whatever a library or a user's function prints."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import traceback
from types import TracebackType
from typing import Any

from curtsy.core import observe

_LEVELS = ("debug", "info", "warning", "error", "critical")


def install(level: int | None = None, *, stdout: bool = True) -> None:
    """Begin to capture; harmless when repeated. `level`: the lowest of Python's `logging`. Without `stdout`, standard
    output stays as it is."""
    root = logging.getLogger()
    if not any(isinstance(handler, _Handler) for handler in root.handlers):
        observe.begin_all_json()
        root.handlers[:] = [_Handler()]
        logging.captureWarnings(True)
        sys.excepthook = _uncaught
        threading.excepthook = _uncaught_in_thread
        sys.stderr = _Lines(sys.stderr.fileno(), "stderr")
        if stdout:
            sys.stdout = _Lines(sys.stdout.fileno(), "stdout")
    if level is not None:
        root.setLevel(level)


def wanted_by_environment() -> bool:
    """Whether the environment asks for JSON: known before the settings are read, which may fail."""
    return os.environ.get("CURTSY_LOG_FORMAT", "").strip().lower() == "json"


class _Handler(logging.Handler):
    """A record of `logging` as one line, its traceback in the field `trace`."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:  # a library formats its message with the wrong arguments
            message = str(record.msg)
        fields: dict[str, Any] = {"logger": record.name, "message": message.strip()}
        if record.exc_info and record.exc_info[0] is not None:
            fields["trace"] = "".join(traceback.format_exception(*record.exc_info))
        place = min(4, max(0, record.levelno // 10 - 1))
        # The level of `logging` has decided already: Celery has an option of its own for it.
        observe.log_always("library", _LEVELS[place], **fields)


class _Lines(io.TextIOBase):
    """A stream whose lines become log lines. It keeps the descriptor, for child processes."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor, self._name = descriptor, name
        self._rest = ""
        self._lock = threading.RLock()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
        for line in filter(str.strip, lines):
            observe.log_always("output", "info", stream=self._name, message=line)
        return len(text)

    def flush(self) -> None:
        """A line is written when it is complete."""


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    text = "".join(traceback.format_exception(kind, error, trace))
    observe.log_always("uncaught", "critical", error=repr(error), trace=text)


def _uncaught_in_thread(given: threading.ExceptHookArgs) -> None:
    if given.exc_value is not None and given.exc_type is not SystemExit:
        _uncaught(given.exc_type, given.exc_value, given.exc_traceback)
