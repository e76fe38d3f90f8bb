"""Waiting for a crawl's end in a triggerer's loop: by its events, by asking now and then where those cannot be had.

No thread waits: a thousand crawls are a thousand small coroutines. The control plane may go away and come back as often
as it likes; only an answer that will not get better (no such crawl, no right to ask) ends the wait early.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections.abc import AsyncIterator, Callable
from functools import cache
from types import TracebackType
from typing import Any, Self

import httpx

from curtsy.client.server import ENDED

#: something comes at least every 15 s while a stream lives
_SILENCE_S = 45.0
_CONNECT_S = 10.0
_BELIEVED_S = 60.0
#: whatever `Retry-After` says, we look again by then
_LONGEST_PAUSE_S = 60.0
#: of the answer to a wait that was given up, and of a crawl that is not there any more
TIMED_OUT, GONE, REFUSED = "timed_out", "gone", "refused"


class Away(Exception):
    """No answer just now; `pause_s` is what the server asks for."""

    def __init__(self, said: str, pause_s: float = 0.0) -> None:
        super().__init__(said)
        self.pause_s = pause_s


class NoUse(Exception):
    """An answer that will be the same however often we ask."""

    def __init__(self, state: str, said: str) -> None:
        super().__init__(said)
        self.state = state


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # reading the certificates takes a while: once per process


class Follower:
    """One control plane."""

    def __init__(self, url: str, key: str | None, told: Callable[[str], None] = lambda _: None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # Like the sync client, no proxy of the environment: the control plane is ours.
        self._client = httpx.AsyncClient(
            base_url=url, headers=headers, verify=_tls() if url.startswith("https:") else False, trust_env=False,
            timeout=httpx.Timeout(_SILENCE_S, connect=_CONNECT_S),
        )  # fmt: skip
        self._url, self._told = url, told
        self._last_id: str | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def until_ended(self, id: str, poll_s: float, left: Callable[[], float | None]) -> dict[str, Any]:
        """The crawl's status at its end; its `state` is ours where that was not waited for."""
        away = False
        while (left_s := left()) is None or left_s > 0:
            try:
                async with asyncio.timeout(left_s):
                    status = await self._status(id)
                    away = False
                    if status["state"] not in ENDED:
                        status = await self._streamed(id) or status
                if status["state"] in ENDED:
                    return status
            except NoUse as error:
                return {"id": id, "state": error.state, "reason": str(error)}
            except Away as error:
                if not away:
                    self._told(str(error))
                away = True
                await self._pause(max(poll_s, min(error.pause_s, _LONGEST_PAUSE_S)), left())
            except TimeoutError:
                continue
        return {"id": id, "state": TIMED_OUT, "reason": None}

    async def cancel(self, id: str) -> None:
        """Tried until it is heard; whoever asks sets the limit."""
        while True:
            try:
                return await self._cancel(id)
            except Away as error:
                self._told(str(error))
                await asyncio.sleep(1.0)
            except NoUse as error:  # it has ended, or was deleted
                return self._told(str(error))

    async def _cancel(self, id: str) -> None:
        try:
            _check(await self._client.post(f"/v1/crawls/{id}/cancel", json={}), self._url)
        except httpx.TransportError as error:
            raise Away(f"{self._url} does not answer: {error!r}.") from error

    async def _status(self, id: str) -> dict[str, Any]:
        try:
            answer = await self._client.get(f"/v1/crawls/{id}")
            _check(answer, self._url)
            found = answer.json()
        except httpx.TransportError as error:
            raise Away(f"{self._url} does not answer: {error!r}.") from error
        except ValueError as error:
            raise Away(f"{self._url} answers something that is not this API.") from error
        return dict(found)

    async def _streamed(self, id: str) -> dict[str, Any] | None:
        """A stream is believed for a minute: what it did not tell, the status does."""
        try:
            async with asyncio.timeout(_BELIEVED_S):
                return await self._stream(id)
        except TimeoutError:
            return None

    async def _stream(self, id: str) -> dict[str, Any] | None:
        """The last status that the stream told; it ends with the crawl, after 5 minutes, or with the server."""
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
            raise Away(f"The events of {self._url} broke off: {error!r}.") from error
        except ValueError as error:
            raise Away(f"{self._url} sends events that are not of this API.") from error
        return status

    @staticmethod
    async def _pause(seconds: float, left_s: float | None) -> None:
        # Spread: those that were told to come back later do not come back together.
        seconds *= random.uniform(0.8, 1.2)
        await asyncio.sleep(seconds if left_s is None else max(0.0, min(seconds, left_s)))


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[str, str]]:
    """`id` and `data` fields as they come; the server writes each on one line."""
    async for line in answer.aiter_lines():
        name, _, value = line.partition(":")
        if name in ("id", "data"):
            yield name, value.removeprefix(" ")


def _check(answer: httpx.Response, url: str) -> None:
    status = answer.status_code
    if status < 400:
        return
    try:
        said = str(answer.json().get("detail") or "")
    except (ValueError, AttributeError):
        said = ""
    said = f"{url} answers {status}. {said}".strip()
    if status >= 500 or status in (408, 429):
        after = answer.headers.get("Retry-After", "")
        raise Away(said, float(after) if after.isdecimal() else 0.0)
    raise NoUse(GONE if status == 404 else REFUSED, said)
