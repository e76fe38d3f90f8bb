"""The only module that logs: log(action, **fields), counters, and the request_id that goes with every line."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from contextvars import ContextVar
from typing import Any

import structlog

#: correlates API call, crawl, log lines, pages and failures
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

#: process-wide counters, shown by --json and later by /metrics
counters: Counter[str] = Counter()

_SECRET_WORDS = ("authorization", "cookie", "password", "secret", "token", "api_key")


def _add_request_id(_logger: Any, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    if (current := request_id.get()) is not None:
        event.setdefault("request_id", current)
    return event


def _hide_secrets(_logger: Any, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for key in event:
        if any(word in key.lower() for word in _SECRET_WORDS):
            event[key] = "***"
    return event


def configure(level: str = "warning", fmt: str = "console") -> None:
    """Logs go to stderr: stdout belongs to results."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if fmt == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            _add_request_id,
            _hide_secrets,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def log(action: str, level: str = "info", **fields: Any) -> None:
    """One line with a stable `action`; fields are facts, never bodies."""
    getattr(structlog.get_logger(), level)(action, **fields)


def count(name: str, by: int = 1) -> None:
    counters[name] += by
