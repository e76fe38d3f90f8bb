"""Requests of the typed client: one response as JSON, text or bytes, or a stream of events."""

from __future__ import annotations

import asyncio
import functools
import http.client
import inspect
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from curtsy.client.http import Client, with_query, word
from curtsy.core.errors import Unavailable, UsageError

T = TypeVar("T")


class Event(NamedTuple):
    """One event of a stream."""

    #: pass it as `last_event_id` to continue after this event
    id: str
    #: `state` or `progress`
    name: str
    data: Any


class Asked:
    """One server. Made by `curtsy.api.connect` and `connect_async`."""

    def __init__(self, url: str, key: str | None = None, request_id: str | None = None) -> None:
        self._client = Client(url, key)
        self._headers = {} if request_id is None else {"X-Request-Id": request_id}

    def __init_subclass__(cls) -> None:
        """Each call refuses arguments that it does not have with an error of Curtsy."""
        for name, call in list(vars(cls).items()):
            if inspect.isfunction(call) and not name.startswith("_"):
                setattr(cls, name, _checked(call))

    @staticmethod
    def _word(value: str) -> str:
        return word(value)

    def _call(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None, kind: str = "json", accepted: Collection[int] = (200,),
    ) -> Any:  # fmt: skip
        sent = None if body is None else json.dumps(_present(body)).encode()
        sent_headers = self._headers | {name: value for name, value in (headers or {}).items() if value is not None}
        status, data = self._client.exchange(method, with_query(path, query or {}), sent, sent_headers)
        if status not in accepted or kind == "json":
            return self._client.read(status, data, accepted)
        return data.decode("utf-8", "replace") if kind == "text" else data if kind == "bytes" else None

    async def _call_async(self, *args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(self._call, *args, **kwargs)

    def _events(
        self, method: str, path: str, query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Iterator[Event]:  # fmt: skip
        sent_headers = self._headers | {name: value for name, value in (headers or {}).items() if value is not None}
        with self._client.stream(method, with_query(path, query or {}), sent_headers) as answer:
            yield from _parsed(answer)

    def _events_async(self, *args: Any, **kwargs: Any) -> AsyncIterator[Event]:
        return _in_threads(self._events(*args, **kwargs))

    def _blocks(self, _method: str, path: str, query: Mapping[str, Any] | None = None) -> Iterator[bytes]:
        """A download in blocks, as it arrives."""
        return self._client.blocks(path, self._headers, **(query or {}))

    def _blocks_async(self, *args: Any, **kwargs: Any) -> AsyncIterator[bytes]:
        return _in_threads(self._blocks(*args, **kwargs))


def _checked(call: Callable[..., Any]) -> Callable[..., Any]:
    def check(*args: Any, **named: Any) -> None:
        try:
            inspect.signature(call).bind(*args, **named)
        except TypeError as error:
            name = call.__name__
            raise UsageError(f"{name}: {error}. help(server.{name}) lists its arguments.") from None

    @functools.wraps(call)
    def checked(*args: Any, **named: Any) -> Any:
        check(*args, **named)
        return call(*args, **named)

    @functools.wraps(call)
    async def checked_async(*args: Any, **named: Any) -> Any:
        check(*args, **named)
        return await call(*args, **named)

    return checked_async if inspect.iscoroutinefunction(call) else checked


async def _in_threads(items: Iterator[T]) -> AsyncIterator[T]:
    try:
        while (item := await asyncio.to_thread(next, items, None)) is not None:
            yield item
    finally:
        await asyncio.to_thread(items.close)  # type: ignore[attr-defined]


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def _parsed(answer: http.client.HTTPResponse) -> Iterator[Event]:
    """Server-sent events: a field per line; an empty line ends an event."""
    fields: dict[str, str] = {}
    while line := answer.readline():
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        name, _, value = text.partition(":")
        if text and name:
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value
        elif not text and "data" in fields:
            yield Event(fields.get("id", ""), fields.get("event", "message"), _json(fields["data"]))
            fields = {}


def _json(data: str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise Unavailable("The server sends events that are not from a Curtsy API.") from None
