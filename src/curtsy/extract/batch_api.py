"""Files and batches of an OpenAI-compatible server: upload questions, create a batch, find it again, read its results.

Only `create` costs something. A batch carries our token in its metadata: after a crash, `find` tells whether the server
has the batch. Every call ends within its time limit; failures are ModelFaults as in endpoint.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from curtsy.extract import endpoint
from curtsy.extract.endpoint import Endpoint, ModelFault

#: key of our token in the metadata of a batch
_TOKEN = "curtsy_batch"
#: batches per page of the list, and pages that are searched for a token
_PER_PAGE, _MAX_PAGES = 100, 20
_ENDED = frozenset(("completed", "failed", "expired", "cancelled"))


@dataclass(frozen=True, slots=True)
class Batch:
    """The state of a batch on the server."""

    id: str
    status: str
    output_file: str | None
    token: str | None

    @property
    def is_over(self) -> bool:
        return self.status in _ENDED


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one question of a batch; None: the server has none."""

    key: str
    reply: endpoint.Reply | None


def upload(where: Endpoint, token: str, lines: list[dict[str, Any]], timeout_s: float) -> str:
    """Return the id of the file with these requests."""
    content = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines).encode("utf-8", "replace")
    name = f"curtsy-{token}.jsonl"
    made = _sent(where, lambda client: client.files.create(file=(name, content), purpose="batch"), timeout_s)
    return str(made["id"])


def create(where: Endpoint, token: str, file: str, timeout_s: float) -> Batch:
    """Create the batch: from here on it costs something."""
    given = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    metadata = {_TOKEN: token}
    return _batch(_sent(where, lambda client: client.batches.create(**given, metadata=metadata), timeout_s))


def find(where: Endpoint, token: str, timeout_s: float) -> Batch | None:
    """Return the batch with this token, if the server has it."""
    after: str | None = None
    for _ in range(_MAX_PAGES):
        more = {} if after is None else {"after": after}
        found = _sent(where, lambda client, more=more: client.batches.list(limit=_PER_PAGE, **more), timeout_s)
        batches = [_batch(one) for one in found.get("data") or ()]
        for one in batches:
            if one.token == token:
                return one
        if not batches or not found.get("has_more"):
            return None
        after = batches[-1].id
    return None


def look(where: Endpoint, id: str, timeout_s: float) -> Batch:
    return _batch(_sent(where, lambda client: client.batches.retrieve(id), timeout_s))


def cancel(where: Endpoint, id: str, timeout_s: float) -> Batch:
    return _batch(_sent(where, lambda client: client.batches.cancel(id), timeout_s))


def results(where: Endpoint, file: str, timeout_s: float) -> Iterator[Result]:
    """Yield the results of a batch. Lines that cannot be read have no result."""
    content = _bytes(where, lambda client: client.files.content(file), timeout_s)
    for line in content.split(b"\n"):
        try:
            document = json.loads(line)
            key = str(document["custom_id"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        yield Result(key, _reply(document.get("response")))


def _reply(response: Any) -> endpoint.Reply | None:
    if not isinstance(response, dict) or response.get("status_code") != 200:
        return None
    try:
        return endpoint.reply_of(json.dumps(response.get("body")).encode())
    except ModelFault:
        return None


def _batch(document: Any) -> Batch:
    metadata = document.get("metadata")
    token = metadata.get(_TOKEN) if isinstance(metadata, dict) else None
    return Batch(str(document["id"]), str(document.get("status")), document.get("output_file_id") or None, token)


def _sent(where: Endpoint, call: Any, timeout_s: float) -> dict[str, Any]:
    content = _bytes(where, call, timeout_s)
    try:
        found = json.loads(content)
        if isinstance(found, dict):
            return found
    except (ValueError, RecursionError):
        pass
    raise ModelFault("llm_garbage", f"{where.url} does not speak the batch API: {content[:80]!r}")


def _bytes(where: Endpoint, call: Any, timeout_s: float) -> bytes:
    try:
        raw = endpoint.exchange(where, lambda client: call(client.with_raw_response), timeout_s)
        status, headers, content = asyncio.run(raw)
    except TimeoutError:
        raise ModelFault("llm_timeout", f"{where.url} gave no answer within {timeout_s:.0f} s") from None
    if status != 200:
        raise endpoint.refusal(where, status, headers, content)
    return content
