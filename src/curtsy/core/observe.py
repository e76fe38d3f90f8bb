"""The only module that logs: log(action, **fields), counters, and the request_id that goes with every line."""

from __future__ import annotations

import re
import sys
from collections import Counter
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.typing import EventDict

#: correlates API call, crawl, log lines, pages and failures
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

#: process-wide counters, shown by --json and later by /metrics
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


def configure(level: str = "warning", fmt: str = "console") -> None:
    """Logs go to stderr: stdout belongs to results."""
    global _wanted
    _wanted = (level.lower(), fmt)


def log(action: str, level: str = "info", **fields: Any) -> None:
    """One line with a stable `action`; fields are facts, never bodies."""
    if _LEVELS[level] < _LEVELS[_wanted[0]]:
        return
    try:
        getattr(_logger(_wanted[1]), level)(action, **fields)
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
        structlog.PrintLogger(file=sys.stderr),
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
