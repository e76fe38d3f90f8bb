"""Waits for the end of a crawl in a triggerer's loop: by its events, or by polling if events are not available.

No thread waits: a thousand crawls are a thousand small coroutines. The wait survives outages of the control plane; only
a permanent error (unknown crawl, missing scope) ends it early.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Any, Self

import httpx

from curtsy.client.server import ENDED

#: a stream sends something at least every 15 s
_SILENCE_S = 45.0
_CONNECT_S = 10.0
_STREAM_S = 60.0
#: upper limit for `Retry-After`
_LONGEST_PAUSE_S = 60.0
#: states of our own: the wait timed out, the crawl does not exist, the request was refused
TIMED_OUT, GONE, REFUSED = "timed_out", "gone", "refused"


class TemporaryError(Exception):
    """Retry later; `pause_s` is the Retry-After of the server."""

    def __init__(self, message: str, pause_s: float = 0.0) -> None:
        super().__init__(message)
        self.pause_s = pause_s


class PermanentError(Exception):
    """Retrying does not help."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # reading the certificates is slow: once per process


class Follower:
    """A connection to one control plane."""

    def __init__(self, url: str, key: str | None, log: Callable[[str], None] = lambda _: None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # As in the blocking client, no proxy from the environment: the control plane is internal.
        self._client = httpx.AsyncClient(
            base_url=url, headers=headers, verify=_tls() if url.startswith("https:") else False, trust_env=False,
            timeout=httpx.Timeout(_SILENCE_S, connect=_CONNECT_S),
        )  # fmt: skip
        self._url, self._log = url, log
        self._last_id: str | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def until_ended(self, id: str, poll_s: float, left: Callable[[], float | None]) -> dict[str, Any]:
        """The status of the ended crawl; `state` is TIMED_OUT, GONE or REFUSED if the status is missing."""
        unavailable = False
        while (left_s := left()) is None or left_s > 0:
            try:
                async with asyncio.timeout(left_s):
                    status = await self._status(id)
                    unavailable = False
                    if status["state"] not in ENDED:
                        status = await self._streamed(id) or status
                if status["state"] in ENDED:
                    return status
            except PermanentError as error:
                return {"id": id, "state": error.state, "reason": str(error)}
            except TemporaryError as error:
                if not unavailable:
                    self._log(str(error))
                unavailable = True
                await self._pause(max(poll_s, min(error.pause_s, _LONGEST_PAUSE_S)), left())
            except TimeoutError:
                continue
        return {"id": id, "state": TIMED_OUT, "reason": None}

    async def cancel(self, id: str) -> None:
        """Retries without a limit; the caller sets a timeout."""
        while True:
            try:
                return await self._cancel(id)
            except TemporaryError as error:
                self._log(str(error))
                await asyncio.sleep(1.0)
            except PermanentError as error:  # it has ended or was deleted
                self._log(str(error))
                return None

    async def _cancel(self, id: str) -> None:
        try:
            _check(await self._client.post(f"/v1/crawls/{id}/cancel", json={}), self._url)
        except httpx.TransportError as error:
            raise TemporaryError(f"{self._url} does not answer: {error!r}.") from error

    async def _status(self, id: str) -> dict[str, Any]:
        try:
            answer = await self._client.get(f"/v1/crawls/{id}")
            _check(answer, self._url)
            found = answer.json()
        except httpx.TransportError as error:
            raise TemporaryError(f"{self._url} does not answer: {error!r}.") from error
        except ValueError as error:
            raise TemporaryError(f"{self._url} does not answer with this API. Check the connection.") from error
        return dict(found)

    async def _streamed(self, id: str) -> dict[str, Any] | None:
        """The status from the stream, for at most a minute; then the status is polled, in case the stream is stale."""
        try:
            async with asyncio.timeout(_STREAM_S):
                return await self._stream(id)
        except TimeoutError:
            return None

    async def _stream(self, id: str) -> dict[str, Any] | None:
        """The last status in the stream, which ends with the crawl, after 5 minutes, or with the server."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": self._last_id} if self._last_id else {})
        status: dict[str, Any] | None = None
        try:
            async with self._client.stream("GET", f"/v1/crawls/{id}/events", headers=headers) as answer:
                if answer.status_code >= 400:
                    await answer.aread()
                _check(answer, self._url)
                async for name, data in _events(answer):
                    if name == "id":
                        self._last_id = data
                    else:
                        status = json.loads(data)
                        if status is not None and status.get("state") in ENDED:
                            return status
        except httpx.TransportError as error:
            raise TemporaryError(f"The event stream of {self._url} was interrupted: {error!r}.") from error
        except ValueError as error:
            raise TemporaryError(f"{self._url} sends unknown events. Check the connection.") from error
        return status

    @staticmethod
    async def _pause(seconds: float, left_s: float | None) -> None:
        # Jitter: clients with the same Retry-After must not return at the same time.
        seconds *= random.uniform(0.8, 1.2)
        await asyncio.sleep(seconds if left_s is None else max(0.0, min(seconds, left_s)))


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[str, str]]:
    """The `id` and `data` fields; the server writes each on one line."""
    async for line in answer.aiter_lines():
        name, _, value = line.partition(":")
        if name in ("id", "data"):
            yield name, value.removeprefix(" ")


def _check(answer: httpx.Response, url: str) -> None:
    status = answer.status_code
    if status < 400:
        return
    try:
        detail = str(answer.json().get("detail") or "")
    except (ValueError, AttributeError):
        detail = ""
    message = f"{url} answers {status}. {detail}".strip()
    if status >= 500 or status in (408, 429):
        after = answer.headers.get("Retry-After", "")
        raise TemporaryError(message, float(after) if after.isdecimal() else 0.0)
    raise PermanentError(GONE if status == 404 else REFUSED, message)
