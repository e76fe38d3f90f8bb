"""The only module that logs: log(action, **fields), counters, and the request_id that goes with every line."""

from __future__ import annotations

import re
import sys
from collections import Counter
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TextIO

if TYPE_CHECKING:
    from structlog.typing import EventDict


class Traced(Protocol):
    """A crawl as log lines name it."""

    @property
    def id(self) -> str: ...
    @property
    def request_id(self) -> str: ...


#: correlates API call, crawl, log lines, pages and failures
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

#: process-wide counters, shown by --json
counters: Counter[str] = Counter()

_SECRET_WORDS = ("authorization", "cookie", "password", "secret", "token", "api_key")
#: passwords in URLs, and the secrets of API keys, anywhere in the text
_SECRETS = re.compile(r"((?<=://)[^\s/@:]*:(?=[^\s/@]+@)|curtsy_[0-9a-f]{12}_)[^\s/@&\"']+")


def _add_request_id(_logger: Any, _name: str, event: EventDict) -> EventDict:
    if (current := request_id.get()) is not None:
        event.setdefault("request_id", current)
    return event


def _hide_secrets(_logger: Any, _name: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if any(word in key.lower() for word in _SECRET_WORDS):
            event[key] = "***"
        elif isinstance(value, str):
            event[key] = _SECRETS.sub(r"\1***", value)
    return event


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_wanted = ("warning", "console")
#: the stream of log lines, if `capture` replaced sys.stderr
_stream: TextIO | None = None
#: whether everything that this process writes must be a JSON line
_all_json = False


def configure(level: str = "warning", fmt: str = "console") -> None:
    """Logs go to stderr: stdout belongs to results."""
    global _wanted
    _wanted = (level.lower(), fmt)


def log(action: str, level: str = "info", **fields: Any) -> None:
    """One line with a stable `action`; fields are facts, never bodies."""
    if _LEVELS[level] >= _LEVELS[_wanted[0]]:
        _write(action, level, fields)


def log_always(action: str, level: str, **fields: Any) -> None:
    """A line whose level was compared elsewhere."""
    _write(action, level, fields)


def log_crawl(crawl: Traced, action: str, level: str = "info", **fields: Any) -> None:
    """An event of a crawl: `request_id` names the request that created the crawl, `by_request_id` the request or task
    that caused the event, if it is another."""
    current = request_id.get()
    if current is not None and current != crawl.request_id:
        fields["by_request_id"] = current
    log(action, level, crawl=crawl.id, request_id=crawl.request_id, **fields)


def announce(text: str, file: TextIO | None = None) -> None:
    """A message for people, whatever the log level: text, or a JSON line if everything must be one."""
    if _all_json:
        log_always("message", "info", message=text)
    else:
        print(text, file=file or sys.stderr, flush=True)


def all_json() -> bool:
    return _all_json


def begin_all_json() -> None:
    """From now on `sys.stderr` may be replaced: log lines go to the present one. See log_capture.py."""
    global _all_json, _stream
    _all_json, _stream = True, _stream or sys.stderr
    _logger.cache_clear()


def _write(action: str, level: str, fields: dict[str, Any]) -> None:
    try:
        getattr(_logger("json" if _all_json else _wanted[1]), level)(action, **fields)
    except OSError:
        # The log's disk is full, or its reader is gone: the work continues without this line.
        counters["log_lines_lost"] += 1


@cache
def _logger(fmt: str) -> Any:
    import structlog  # its import is slow, and many runs log nothing

    renderer: Any = (
        structlog.processors.JSONRenderer()
        if fmt == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    return structlog.wrap_logger(
        structlog.PrintLogger(file=_stream or sys.stderr),
        processors=[
            _add_request_id,
            _hide_secrets,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(0),
    )


def count(name: str, by: int = 1) -> None:
    counters[name] += by
