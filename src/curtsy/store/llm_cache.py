"""Answers of language models by the digest of the request, and the usage of each crawl."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from curtsy.core.claims import Usage
from curtsy.store.rows import Bulk, Delete, unique_sorted


class FieldUsage(NamedTuple):
    """What a model was used for. The sums of tokens and costs are those of the crawl; a call counts for each field."""

    crawl: int
    schema: str
    field: str
    calls: int
    cached: int
    prompt_tokens: float
    completion_tokens: float
    cost: float


_MAX_FIELD = 300
_GET = text("SELECT answer FROM llm_cache WHERE key = :key")
_PUT = text(
    "INSERT INTO llm_cache (key, crawl, subject, answer, at_ms) VALUES (:key, :crawl, :subject, :answer, :at_ms) "
    "ON CONFLICT (key) DO UPDATE SET answer = excluded.answer, at_ms = excluded.at_ms"
)
_SPEND = text(
    "INSERT INTO llm_usage (crawl, calls, cached, prompt_tokens, completion_tokens, cost) VALUES "
    "(:crawl, :calls, :cached, :prompt_tokens, :completion_tokens, :cost) ON CONFLICT (crawl) DO UPDATE SET "
    "calls = llm_usage.calls + excluded.calls, cached = llm_usage.cached + excluded.cached, "
    "prompt_tokens = llm_usage.prompt_tokens + excluded.prompt_tokens, "
    "completion_tokens = llm_usage.completion_tokens + excluded.completion_tokens, "
    "cost = llm_usage.cost + excluded.cost"
)
_SPENT = text("SELECT calls, cached, prompt_tokens, completion_tokens, cost FROM llm_usage WHERE crawl = :crawl")
_NAMES = ("calls", "cached", "prompt_tokens", "completion_tokens", "cost")
_SPEND_ON = text(
    f"INSERT INTO llm_field_usage (crawl, schema, field, {', '.join(_NAMES)}) VALUES "
    f"(:crawl, :schema, :field, {', '.join(f':{name}' for name in _NAMES)}) "
    "ON CONFLICT (crawl, schema, field) DO UPDATE "
    f"SET {', '.join(f'{name} = llm_field_usage.{name} + excluded.{name}' for name in _NAMES)}"
)
_BY_FIELD = text(
    f"SELECT crawl, schema, field, {', '.join(_NAMES)} FROM llm_field_usage WHERE crawl = :crawl "
    "ORDER BY cost DESC, prompt_tokens DESC, schema, field LIMIT :limit"
)
_NEWEST = text("SELECT crawl FROM llm_usage ORDER BY crawl DESC LIMIT :limit")
#: fields of a crawl that are shown
_SHOWN = 200
_of_subjects = Bulk(
    "SELECT c.key FROM v JOIN llm_cache c ON c.crawl = v.crawl AND c.subject = v.subject", "crawl bigint, subject text"
)
delete_rows = Delete("llm_cache", "key text")
_waiting = Bulk(
    "SELECT q.key FROM v JOIN llm_questions q ON q.crawl = v.crawl AND q.subject = v.subject",
    "crawl bigint, subject text",
)
_delete_questions = Delete("llm_questions", "key text")


def get(tx: Connection, key: str) -> str | None:
    found = tx.execute(_GET, {"key": key}).scalar()
    return None if found is None else str(found)


def put(tx: Connection, key: str, answer: str, crawl: int, subject: str, at_ms: int) -> None:
    """Store an answer with its crawl and subject; it is deleted with them."""
    tx.execute(_PUT, {"key": key, "crawl": crawl, "subject": subject, "answer": answer, "at_ms": at_ms})


def spend(tx: Connection, crawl: int, usage: Usage) -> None:
    """Count usage; one row per crawl, so that a cap holds for all its workers."""
    names = ("calls", "cached", "prompt_tokens", "completion_tokens", "cost")
    tx.execute(_SPEND, {"crawl": crawl, **{name: getattr(usage, name) for name in names}})


def spend_on(tx: Connection, crawl: int, schema: str, fields: Sequence[str], usage: Usage) -> None:
    """Count usage by field: each field has the call, and an equal share of its tokens and its cost."""
    share = 1 / max(1, len(fields))
    given = {
        "crawl": crawl, "schema": schema, "calls": usage.calls, "cached": usage.cached,
        "prompt_tokens": usage.prompt_tokens * share, "completion_tokens": usage.completion_tokens * share,
        "cost": usage.cost * share,
    }  # fmt: skip
    for field in sorted(fields):  # one order of locks
        tx.execute(_SPEND_ON, {**given, "field": field[:_MAX_FIELD]})


def by_field(tx: Connection, crawl: int) -> list[FieldUsage]:
    """The fields of a crawl, the most expensive first."""
    return [FieldUsage(*row) for row in tx.execute(_BY_FIELD, {"crawl": crawl, "limit": _SHOWN})]


def newest_crawls(tx: Connection, limit: int) -> list[int]:
    """The newest crawls that used a model."""
    return [int(n) for n in tx.execute(_NEWEST, {"limit": limit}).scalars()]


def spent(tx: Connection, crawl: int) -> Usage:
    row = tx.execute(_SPENT, {"crawl": crawl}).first()
    if row is None:
        return Usage()
    return Usage(calls=row[0], cached=row[1], prompt_tokens=row[2], completion_tokens=row[3], cost=row[4])


def has_before(tx: Connection, before_ms: int) -> bool:
    return tx.execute(text("SELECT 1 FROM llm_cache WHERE at_ms < :at LIMIT 1"), {"at": before_ms}).first() is not None


def forget_before(tx: Connection, before_ms: int) -> int:
    """Delete some older answers; returns how many."""
    return delete_rows.where(tx, "at_ms < :before_ms", {"before_ms": before_ms}, 5000)


def forget_subjects(tx: Connection, subjects: Iterable[tuple[int, str]]) -> None:
    """Delete answers about these pages and sites (crawl, subject), and questions that wait for one."""
    wanted = unique_sorted(subjects)
    delete_rows(tx, [(row[0],) for row in _of_subjects(tx, wanted)])
    _delete_questions(tx, [(row[0],) for row in _waiting(tx, wanted)])
