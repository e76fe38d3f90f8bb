"""Records, and the results of stages on the way to them. The first stored result of a stage wins."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, text

from curtsy.model import Record
from curtsy.store.rows import Bulk, Insert

_insert = Bulk(
    "INSERT INTO records (crawl, subject, schema_hash, ordinal, schema, url, data, scores, low_confidence, created_ms, "
    "request_id) SELECT crawl, subject, schema_hash, ordinal, schema, url, data, scores, low_confidence, created_ms, "
    "request_id FROM v WHERE true ON CONFLICT (crawl, subject, schema_hash, ordinal) DO NOTHING RETURNING n",
    crawl="bigint",
    subject="text",
    schema_hash="text",
    ordinal="int",
    schema="text",
    url="text",
    data="text",
    scores="text",
    low_confidence="boolean",
    created_ms="bigint",
    request_id="text",
)
_save = Insert(
    "results", "crawl, subject, stage", crawl="bigint", subject="text", stage="text", result="text", at_ms="bigint"
)
_RESULTS = text("SELECT stage, result FROM results WHERE crawl = :crawl AND subject = :subject")
_FORGET = text("DELETE FROM results WHERE crawl = :crawl AND subject = :subject")
_COLUMNS = "n, crawl, subject, schema_hash, ordinal, schema, url, data, scores, low_confidence, created_ms, request_id"
_CHUNK = text(
    f"SELECT {_COLUMNS} FROM records WHERE crawl = :crawl AND n > :after "
    "AND (:doubtful < 0 OR low_confidence = (:doubtful = 1)) ORDER BY n LIMIT :limit"
)


def save_result(tx: Connection, crawl: int, subject: str, stage: str, result: Any, at_ms: int) -> None:
    """Keep what a stage found; if it found something before, that stays."""
    _save(tx, [(crawl, subject, stage, _json(result), at_ms)])


def results(tx: Connection, crawl: int, subject: str) -> dict[str, Any]:
    """stage -> what it found, of the stages that are done."""
    return {row[0]: json.loads(row[1]) for row in tx.execute(_RESULTS, {"crawl": crawl, "subject": subject})}


def forget_results(tx: Connection, crawl: int, subject: str) -> None:
    """Their record is stored: nothing will ask for them."""
    tx.execute(_FORGET, {"crawl": crawl, "subject": subject})


def insert(tx: Connection, rows: Iterable[Record]) -> int:
    """Write records; one whose key is there already stays as it is. How many were new."""
    fresh = {(row.crawl, row.subject, row.schema_hash, row.ordinal): row for row in rows}
    return len(
        _insert(
            tx,
            [
                (*key, row.schema, row.url, _json(row.data), _json(row.scores), row.low_confidence, row.created_ms,
                 row.request_id)
                for key, row in sorted(fresh.items())
            ],
        )
    )  # fmt: skip


def chunk(
    tx: Connection, crawl: int, after: int = 0, limit: int = 500, low_confidence: bool | None = None
) -> tuple[list[Record], int]:
    """Records of a crawl in the order they were stored, after a cursor; and the next cursor."""
    doubtful = -1 if low_confidence is None else int(low_confidence)
    rows = tx.execute(_CHUNK, {"crawl": crawl, "after": after, "limit": limit, "doubtful": doubtful}).all()
    return [_record(row) for row in rows], (rows[-1].n if rows else after)


def count(tx: Connection, crawl: int) -> int:
    return int(tx.execute(text("SELECT count(*) FROM records WHERE crawl = :crawl"), {"crawl": crawl}).scalar_one())


def _record(row: Any) -> Record:
    values = dict(row._mapping)
    values |= {"data": json.loads(row.data), "scores": json.loads(row.scores)}
    return Record(**{**values, "low_confidence": bool(row.low_confidence)})


def _json(value: Any) -> str:
    # A page's own JSON may hold half of a surrogate pair, which no database takes.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
