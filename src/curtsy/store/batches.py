"""Questions for a model that wait for a batch, and batches that were sent: the durable state of the batch lane.

    llm_questions   queued -> sent (in a batch) -> deleted when its answer is in llm_cache; or failed: ask directly
    llm_batches     new -> creating -> running -> deleted when all its results are merged

A question's budget is taken in the transaction that queues it, and settled in the one that ends it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, text

from curtsy.store.rows import is_postgresql


class WaitingQuestion(NamedTuple):
    key: str
    crawl: int
    subject: str
    #: JSON: messages, form, options of the call, the maximum usage, schema and fields
    body: dict[str, Any]
    state: str


class SentBatch(NamedTuple):
    n: int
    token: str
    state: str
    file: str | None
    batch: str | None
    #: time of the last change of state
    at_ms: int
    made_ms: int
    #: when its server was last queried
    looked_ms: int


_QUESTION = "key, crawl, subject, body, state"
_BATCH = "n, token, state, file, batch, at_ms, made_ms, looked_ms"
_ONE = text(f"SELECT {_QUESTION} FROM llm_questions WHERE key = :key")
_PUT = text(
    "INSERT INTO llm_questions (key, crawl, subject, body, at_ms) VALUES (:key, :crawl, :subject, :body, :at_ms) "
    "ON CONFLICT (key) DO NOTHING"
)
_DROP = text("DELETE FROM llm_questions WHERE key = :key")
_QUEUED = "SELECT key FROM llm_questions WHERE state = 'queued' ORDER BY at_ms, key LIMIT :limit"
_AGE = text("SELECT count(*), min(at_ms) FROM llm_questions WHERE state = 'queued'")
_SEND = text("UPDATE llm_questions SET state = 'sent', batch = :n WHERE key IN :keys AND state = 'queued'").bindparams(
    bindparam("keys", expanding=True)
)
_OF_BATCH = text(f"SELECT {_QUESTION} FROM llm_questions WHERE batch = :n AND state = 'sent' ORDER BY key")
_FAIL = text("UPDATE llm_questions SET state = 'failed', batch = NULL WHERE key = :key AND state = 'sent'")
_NEW = text(
    "INSERT INTO llm_batches (token, state, at_ms, made_ms, looked_ms) "
    "VALUES (:token, 'new', :now, :now, 0) RETURNING n"
)
_BATCHES = text(f"SELECT {_BATCH} FROM llm_batches ORDER BY n")
_ENDED = text("DELETE FROM llm_batches WHERE n = :n")
_LOOKED = text("UPDATE llm_batches SET looked_ms = :now WHERE n = :n")
_WAKE = text(
    "UPDATE outbox SET next_ms = :now WHERE crawl = :crawl AND subject = :subject AND state = 'open' "
    "AND kind IN ('extract', 'score') AND begun_ms IS NULL"
)


def question(tx: Connection, key: str) -> WaitingQuestion | None:
    row = tx.execute(_ONE, {"key": key}).first()
    return None if row is None else _question(row)


def put(tx: Connection, key: str, crawl: int, subject: str, body: dict[str, Any], at_ms: int) -> bool:
    """Queue a question; False if it is waiting already."""
    given = {"key": key, "crawl": crawl, "subject": subject, "body": json.dumps(body), "at_ms": at_ms}
    return tx.execute(_PUT, given).rowcount > 0


def drop(tx: Connection, key: str) -> bool:
    """Delete a question; False if another process did."""
    return tx.execute(_DROP, {"key": key}).rowcount > 0


def queued(tx: Connection) -> tuple[int, int | None]:
    """How many questions wait for a batch, and since when the oldest one does."""
    row = tx.execute(_AGE).one()
    return int(row[0]), row[1]


def begin(tx: Connection, token: str, limit: int, now_ms: int) -> int | None:
    """Make a batch of queued questions; None if no question waits."""
    locked = " FOR UPDATE SKIP LOCKED" if is_postgresql(tx) else ""
    keys = list(tx.execute(text(_QUEUED + locked), {"limit": limit}).scalars())
    if not keys:
        return None
    n = int(tx.execute(_NEW, {"token": token, "now": now_ms}).scalar_one())
    tx.execute(_SEND, {"n": n, "keys": keys})
    return n


def all_batches(tx: Connection) -> list[SentBatch]:
    return [SentBatch(*row) for row in tx.execute(_BATCHES)]


def questions_of(tx: Connection, n: int) -> list[WaitingQuestion]:
    """The questions of a batch that have no result yet."""
    return [_question(row) for row in tx.execute(_OF_BATCH, {"n": n})]


def advance(tx: Connection, n: int, now_ms: int, values: dict[str, str | None]) -> None:
    """Change a batch: its state, its file, its id on the server."""
    names = ", ".join(f"{name} = :{name}" for name in values)
    tx.execute(text(f"UPDATE llm_batches SET {names}, at_ms = :now WHERE n = :n"), {**values, "n": n, "now": now_ms})


def looked(tx: Connection, n: int, now_ms: int) -> None:
    tx.execute(_LOOKED, {"n": n, "now": now_ms})


def fail(tx: Connection, key: str) -> bool:
    """The batch has no answer, so the question becomes a single call. False if the question has ended already."""
    return tx.execute(_FAIL, {"key": key}).rowcount > 0


def ended(tx: Connection, n: int) -> None:
    tx.execute(_ENDED, {"n": n})


def wake(tx: Connection, subjects: Iterable[tuple[int, str]], now_ms: int) -> None:
    """Make the stages that wait for an answer about these subjects due."""
    for crawl, subject in sorted(set(subjects)):
        tx.execute(_WAKE, {"crawl": crawl, "subject": subject, "now": now_ms})


def _question(row: Any) -> WaitingQuestion:
    return WaitingQuestion(row[0], row[1], row[2], json.loads(row[3]), row[4])
