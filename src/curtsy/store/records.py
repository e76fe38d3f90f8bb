"""Records, their versions, and the results of the stages before them. The first stored result of a stage wins."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, text

from curtsy.core.record import Record
from curtsy.store import sources, tables
from curtsy.store.rows import Delete, Insert, is_postgresql
from curtsy.store.sources import Source

#: columns that hold JSON
_JSON = ("data", "scores", "confidence", "fields", "withheld", "contradicted", "rungs", "usage", "failure")
#: columns that hold lists, and what a decision changes of those with JSON
_LISTS = ("fields", "withheld", "contradicted")
_BY_DECISION = ("data", "fields", "withheld", "contradicted", "scores", "rungs")
_NAMES = tuple(field.name for field in fields_of(Record))
_COLUMNS = ", ".join(_NAMES)
_save = Insert("results", "crawl, subject, stage", "crawl bigint, subject text, stage text, result text, at_ms bigint")
_RESULTS = text("SELECT stage, result FROM results WHERE crawl = :crawl AND subject = :subject")
_FORGET = text("DELETE FROM results WHERE crawl = :crawl AND subject = :subject AND stage = :stage")
_GET = text(f"SELECT {_COLUMNS} FROM records WHERE n = :n")
_LOCK_VERSIONS = text(
    "SELECT r.n FROM records r JOIN records this ON this.n = :n AND r.crawl = this.crawl AND r.subject = this.subject "
    "AND r.schema_hash = this.schema_hash AND r.ordinal = this.ordinal ORDER BY r.n FOR UPDATE OF r"
)
_VERSIONS = (
    f"SELECT {_COLUMNS} FROM records WHERE crawl = :crawl AND subject = :subject AND schema_hash = :schema_hash "
    "AND ordinal = :ordinal"
)
_NEWEST = f"{_VERSIONS} ORDER BY version DESC LIMIT 1"
#: the versions that a person reviewed, except replaced ones
_STANDING = text(f"{_VERSIONS} AND reviewed_ms IS NOT NULL AND status <> 'superseded'")
#: reviews of the same subject under an earlier schema of that name
_BY_OLDER_SCHEMA = text(
    "SELECT status, data FROM records WHERE crawl = :crawl AND subject = :subject AND schema_hash <> :schema_hash "
    "AND schema = :schema AND ordinal = :ordinal AND reviewed_ms IS NOT NULL AND status <> 'superseded'"
)
#: why a record with good evidence is held: a person reviewed an older version
REVIEWED_BEFORE = "reviewed_before"
_STATUS = text("UPDATE records SET status = :status WHERE n = :n")
_AS_OF = text("UPDATE records SET as_of = :as_of WHERE n = :n")
_BESIDE = text(
    "UPDATE records SET status = 'superseded' WHERE crawl = :crawl AND subject = :subject "
    "AND schema_hash = :schema_hash AND ordinal = :ordinal AND version < :version AND status <> 'superseded'"
)
_DECIDED = text(
    "UPDATE records SET status = :status, data = :data, fields = :fields, withheld = :withheld, "
    "contradicted = :contradicted, scores = :scores, rungs = :rungs, low_confidence = :low, reviewed_ms = :reviewed_ms "
    "WHERE n = :n"
)
#: what a list shows by default
PUBLISHED = ("published",)


# Results of stages


def save_result(tx: Connection, crawl: int, subject: str, stage: str, result: Any, at_ms: int) -> None:
    """Store the result of a stage, unless it has one."""
    _save(tx, [(crawl, subject, stage, _json(result), at_ms)])


def results(tx: Connection, crawl: int, subject: str) -> dict[str, Any]:
    """stage -> its result, for completed stages."""
    return {row[0]: json.loads(row[1]) for row in tx.execute(_RESULTS, {"crawl": crawl, "subject": subject})}


def forget_results(tx: Connection, crawl: int, subject: str, stages: Iterable[str] = ("extract", "score")) -> None:
    """Delete the results of these stages: their record is stored, or they run again."""
    for stage in stages:
        tx.execute(_FORGET, {"crawl": crawl, "subject": subject, "stage": stage})


# Records


def add(tx: Connection, record: Record, cited: Iterable[Source] = (), again: bool = False) -> Record | None:
    """Write a record with the sources of its evidence; None if there was nothing new to write.

    The first record of a key wins, unless a model's failure left it incomplete. With `again` (a new extraction) a
    different record becomes the next version and supersedes an unreviewed one. A reviewed version stays, and the new
    one is held. A record of a changed schema is held, too, if it differs from a reviewed record of the older schema.
    """
    before = newest(tx, record)
    if before is not None:
        if not _replaces(record, before, again):
            _saw(tx, before, record)
            return None
        if before.reviewed_ms is None:
            tx.execute(_STATUS, {"status": "superseded", "n": before.n})
        standing = _standing(tx, record)
        if any(_says_the_same(one, record) for one in standing):
            _saw(tx, before, record)
            return None
        record = replace(record, version=before.version + 1)
        if standing:
            record = _held_beside(record)
    elif _was_decided_otherwise(tx, record):
        record = _held_beside(record)
    values = {name: _json(getattr(record, name)) if name in _JSON else getattr(record, name) for name in _NAMES}
    del values["n"]
    n = tx.execute(tables.records.insert().values(values).returning(tables.records.c.n)).scalar_one()
    sources.keep(tx, record.crawl, n, cited)
    return replace(record, n=int(n))


def _replaces(record: Record, before: Record, again: bool) -> bool:
    """Whether the record becomes the next version. One without a model's values never replaces one that has them."""
    if record.failure is not None and before.failure is None:
        return False
    again = again or before.failure is not None
    return again and not (_says_the_same(before, record) and before.failure == record.failure)


def newest(tx: Connection, of: Record) -> Record | None:
    """The newest version of the record with the same key."""
    locked = " FOR UPDATE" if is_postgresql(tx) else ""
    row = tx.execute(text(_NEWEST + locked), _key(of)).first()
    return None if row is None else _record(row)


def _saw(tx: Connection, before: Record, after: Record) -> None:
    """Newer pages led to the same record: only update what it has seen."""
    if after.as_of > before.as_of:
        tx.execute(_AS_OF, {"as_of": after.as_of, "n": before.n})


def _standing(tx: Connection, of: Record) -> list[Record]:
    return [_record(row) for row in tx.execute(_STANDING, _key(of))]


def _was_decided_otherwise(tx: Connection, record: Record) -> bool:
    decided = tx.execute(_BY_OLDER_SCHEMA, {**_key(record), "schema": record.schema}).all()
    said = json.loads(_json(record.data))
    return any(row.status != "published" or json.loads(row.data) != said for row in decided)


def _key(of: Record) -> dict[str, Any]:
    return {name: getattr(of, name) for name in ("crawl", "subject", "schema_hash", "ordinal")}


def _held_beside(record: Record) -> Record:
    reasons = [*record.confidence.get("reasons", ()), REVIEWED_BEFORE]
    return replace(record, status="held", confidence={**record.confidence, "reasons": reasons})


def _says_the_same(before: Record, after: Record) -> bool:
    names = ("data", "fields", "withheld", "scores")
    same = all(json.loads(_json(getattr(before, name))) == json.loads(_json(getattr(after, name))) for name in names)
    return same and _own_confidence(before) == _own_confidence(after)


def _own_confidence(record: Record) -> Any:
    """The confidence without the effect of older versions."""
    found = json.loads(_json(record.confidence))
    reasons = [reason for reason in found.get("reasons", ()) if reason != REVIEWED_BEFORE]
    return found | {"reasons": reasons}


def get(tx: Connection, n: int, lock: bool = False) -> Record | None:
    """With `lock`, all versions of the record are locked, oldest first: a decision changes older ones too."""
    if lock and is_postgresql(tx):
        tx.execute(_LOCK_VERSIONS, {"n": n})
    row = tx.execute(_GET, {"n": n}).first()
    return None if row is None else _record(row)


def decided(tx: Connection, record: Record) -> None:
    """Write the result of a review. If this version is published now, an older published version is superseded."""
    values = {name: _json(getattr(record, name)) for name in _BY_DECISION}
    # Later readers rely on that review.
    low = record.low_confidence and record.status != "published"
    decision = {"status": record.status, "reviewed_ms": record.reviewed_ms, "low": low, "n": record.n}
    tx.execute(_DECIDED, values | decision)
    if record.status == "published":
        names = ("crawl", "subject", "schema_hash", "ordinal", "version")
        tx.execute(_BESIDE, {name: getattr(record, name) for name in names})


_REPLACED = text(
    "SELECT n, status FROM records WHERE crawl = :crawl AND subject = :subject AND schema_hash = :schema_hash "
    "AND ordinal = :ordinal AND version < :version AND status <> 'superseded' ORDER BY n"
)
_RESTORE = text("UPDATE records SET status = :status WHERE n = :n AND status = 'superseded'")


def replaced_by(tx: Connection, record: Record) -> list[tuple[int, str]]:
    """(number, status) of the older versions that step back if this one is published."""
    names = ("crawl", "subject", "schema_hash", "ordinal", "version")
    rows = tx.execute(_REPLACED, {name: getattr(record, name) for name in names})
    return [(int(n), str(status)) for n, status in rows]


def restored(tx: Connection, record: Record, replaced: Iterable[tuple[int, str]]) -> None:
    """Write a record as it was before a decision, and the older versions that had stepped back."""
    values = {name: _json(getattr(record, name)) for name in _BY_DECISION}
    names = {"status": record.status, "reviewed_ms": record.reviewed_ms, "low": record.low_confidence, "n": record.n}
    tx.execute(_DECIDED, values | names)
    for n, status in replaced:
        tx.execute(_RESTORE, {"n": n, "status": status})


#: what needs a decision: a record that is held, or the contradicted fields of a published one. The partial indexes
#: match these texts.
NEEDS = {"record": "status = 'held'", "field": "status = 'published' AND contradicted <> '[]'"}


def waiting_beside(
    tx: Connection, crawl: int | None, n: int, limit: int, backwards: bool, needs: str | None = None
) -> list[Record]:
    """Records that need a decision, after this number or before it, the nearest first. `needs`: of `NEEDS`."""
    which = "" if crawl is None else "AND crawl = :crawl "
    side, order = ("n < :n", "n DESC") if backwards else ("n > :n", "n")
    given = {"n": n, "limit": limit} | ({} if crawl is None else {"crawl": crawl})
    found: list[Record] = []
    for name, condition in NEEDS.items():
        if needs in (None, name):
            query = f"SELECT {_COLUMNS} FROM records WHERE {condition} {which}AND {side} ORDER BY {order} LIMIT :limit"
            found += [_record(row) for row in tx.execute(text(query), given)]
    return sorted(found, key=lambda record: record.n, reverse=backwards)[:limit]


def with_contradicted_fields(tx: Connection, crawl: int, schema_hash: str | None) -> int:
    """Number of published records with fields that need a decision."""
    query = text(f"SELECT count(*) FROM records WHERE crawl = :crawl AND {NEEDS['field']} AND schema_hash = :hash")
    return int(tx.execute(query, {"crawl": crawl, "hash": schema_hash}).scalar_one())


def chunk(
    tx: Connection,
    crawl: int | None,
    after: int = 0,
    limit: int = 500,
    low_confidence: bool | None = None,
    statuses: Collection[str] = PUBLISHED,
    schema_hash: str | None = None,
) -> tuple[list[Record], int]:
    """Records in the order they were stored, after a cursor; and the next cursor.

    For one crawl or all, with one of these states (empty: any), of the schema with that hash (None: any).
    """
    conditions = ["n > :after"]
    given: dict[str, Any] = {"after": after, "limit": limit}
    if crawl is not None:
        conditions.append("crawl = :crawl")
        given["crawl"] = crawl
    if schema_hash is not None:
        conditions.append("schema_hash = :schema_hash")
        given["schema_hash"] = schema_hash
    if statuses:
        # Constants in the text of the statement: the partial indexes match only literals.
        conditions.append(_in_states(statuses))
    if low_confidence is not None:
        conditions.append("low_confidence = :low")
        given["low"] = low_confidence
    query = text(f"SELECT {_COLUMNS} FROM records WHERE {' AND '.join(conditions)} ORDER BY n LIMIT :limit")
    rows = tx.execute(query, given).all()
    return [_record(row) for row in rows], (rows[-1].n if rows else after)


def _in_states(statuses: Collection[str]) -> str:
    known = [word for word in ("published", "held", "rejected", "superseded") if word in statuses]
    listed = ", ".join(f"'{word}'" for word in known)
    return f"status = {listed}" if len(known) == 1 else f"status IN ({listed or 'NULL'})"


def counts(tx: Connection, crawl: int, schema_hash: str | None) -> dict[str, int]:
    """Number of records by status, for one schema (None: all)."""
    more = "" if schema_hash is None else " AND schema_hash = :hash"
    query = text(f"SELECT status, count(*) FROM records WHERE crawl = :crawl{more} GROUP BY status ORDER BY status")
    return {row[0]: int(row[1]) for row in tx.execute(query, {"crawl": crawl, "hash": schema_hash})}


def since(tx: Connection, crawl: int, at_ms: int, after: int, limit: int = 500) -> list[Record]:
    """Records that were made since then, by number."""
    query = text(
        f"SELECT {_COLUMNS} FROM records WHERE crawl = :crawl AND n > :after AND created_ms >= :at ORDER BY n "
        "LIMIT :limit"
    )
    return [_record(row) for row in tx.execute(query, {"crawl": crawl, "after": after, "at": at_ms, "limit": limit})]


def of_subject(tx: Connection, crawl: int, subject: str) -> list[Record]:
    """All records of a page or a site, of every schema and version, oldest first."""
    query = text(f"SELECT {_COLUMNS} FROM records WHERE crawl = :crawl AND subject = :subject ORDER BY n")
    return [_record(row) for row in tx.execute(query, {"crawl": crawl, "subject": subject})]


_OF_PAGE = text(
    f"SELECT {_COLUMNS} FROM records WHERE crawl = :crawl AND (subject = :page OR n IN "
    "(SELECT record FROM citations WHERE crawl = :crawl AND page = :page)) AND status = 'published' ORDER BY n"
)


def of_page(tx: Connection, crawl: int, page: str) -> list[Record]:
    """The published records that were made from a page, or cite it."""
    return [_record(row) for row in tx.execute(_OF_PAGE, {"crawl": crawl, "page": page})]


# Deleting


_RECORDS_OF = text(
    "SELECT n FROM records WHERE crawl = :crawl AND subject IN :subjects "
    "UNION SELECT record FROM citations WHERE crawl = :crawl AND page IN :subjects"
).bindparams(bindparam("subjects", expanding=True))
_delete_records = Delete("records", "n bigint")
_delete_reviews = Delete("reviews", "n bigint")
_delete_citations = Delete("citations", "record bigint, page text")
_delete_sources = Delete("sources", "crawl bigint, page text, sha256 text")
DELETES = (_delete_records, _delete_reviews, _delete_citations, _delete_sources)


def forget(tx: Connection, crawl: int, subjects: Sequence[str]) -> None:
    """Delete the records made from any of these pages and sites, with their reviews and sources."""
    found = list(tx.execute(_RECORDS_OF, {"crawl": crawl, "subjects": list(subjects)}).scalars())
    if found:
        _delete_records(tx, [(n,) for n in found])
        for rows in (_delete_reviews, _delete_citations):
            rows.where(tx, "record IN :ns", {"ns": found})
    _delete_sources.where(tx, "crawl = :crawl AND page IN :pages", {"crawl": crawl, "pages": list(subjects)})


def _record(row: Any) -> Record:
    values = dict(row._mapping)
    values |= {name: json.loads(values[name]) for name in _JSON}
    values |= {name: tuple(values[name]) for name in _LISTS}
    return Record(**{**values, "low_confidence": bool(row.low_confidence)})


def _json(value: Any) -> str:
    # The JSON of a page may contain half of a surrogate pair, which no database accepts.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
