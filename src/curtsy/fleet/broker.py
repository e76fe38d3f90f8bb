"""Malformed messages on a queue are rejected and logged, and do not end the worker.

Celery rejects an unknown task by itself. Two kinds of message raise inside the worker's event loop instead, which ends
the worker process: an entry of a Redis list that is not a message (`Channel`), and a message whose body is not Celery's
(`Consumer`). Both are handled here. Wrong arguments only fail the task, in the child process.
"""

from __future__ import annotations

from typing import Any

from celery import signals
from celery.worker import consumer
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as redis_transport

from curtsy.core.observe import count, log

#: how much of a rejected message the log shows
_SHOWN = 200


#: what reading a malformed message raises; errors of connections are others
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)


class Consumer(consumer.Consumer):  # type: ignore[misc]
    def create_task_handler(self, *args: Any, **kwargs: Any) -> Any:
        handle = super().create_task_handler(*args, **kwargs)

        def on_task_received(message: Any) -> None:
            try:
                handle(message)
            except _UNREADABLE as error:
                self.on_invalid_task(None, message, error)

        return on_task_received


class Channel(redis_transport.Channel):
    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except _UNREADABLE as error:
            # BRPOP has removed the entry, and nothing could be delivered.
            _reject("not a message", error)
            return True


class Transport(redis_transport.Transport):
    Channel = Channel


def install() -> None:
    """Make this the transport of every redis:// broker URL."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"
    signals.task_unknown.connect(log_unknown)
    signals.task_rejected.connect(log_rejected)


def log_unknown(name: str = "", **_: Any) -> None:
    _reject(f"unknown task {name!r}")


def log_rejected(exc: BaseException | None = None, **_: Any) -> None:
    _reject("not a task of Celery's protocol" if exc is None else "invalid task", exc)


def _reject(reason: str, error: BaseException | None = None) -> None:
    count("messages_rejected")
    log("message_rejected", level="error", reason=reason, error=None if error is None else repr(error)[:_SHOWN])
