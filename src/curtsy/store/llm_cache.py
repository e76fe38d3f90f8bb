"""Answers of language models by the digest of the request, and the usage of each crawl."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text

from curtsy.core.claims import Usage
from curtsy.store.rows import Bulk, Delete, unique_sorted

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
_of_subjects = Bulk(
    "SELECT c.key FROM v JOIN llm_cache c ON c.crawl = v.crawl AND c.subject = v.subject", "crawl bigint, subject text"
)
delete_rows = Delete("llm_cache", "key text")


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


def spent(tx: Connection, crawl: int) -> Usage:
    row = tx.execute(_SPENT, {"crawl": crawl}).first()
    if row is None:
        return Usage()
    return Usage(calls=row[0], cached=row[1], prompt_tokens=row[2], completion_tokens=row[3], cost=row[4])


def has_before(tx: Connection, before_ms: int) -> bool:
    return tx.execute(text("SELECT 1 FROM llm_cache WHERE at_ms < :at LIMIT 1"), {"at": before_ms}).first() is not None


def forget_before(tx: Connection, before_ms: int) -> int:
    """Some answers that are older; how many there were."""
    return delete_rows.where(tx, "at_ms < :before_ms", {"before_ms": before_ms}, 5000)


def forget_subjects(tx: Connection, subjects: Iterable[tuple[int, str]]) -> None:
    """Answers about these pages and sites (crawl, subject)."""
    delete_rows(tx, [(row[0],) for row in _of_subjects(tx, unique_sorted(subjects))])
