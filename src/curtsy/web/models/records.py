"""Records and changes over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from curtsy.model import Record
from curtsy.store.changes import Change
from curtsy.store.pages import page_id
from curtsy.web.models.crawls import when
from curtsy.web.paging import Paged

Kind = Literal["new", "changed", "unchanged", "gone", "moved", "unread"]


class RecordInfo(BaseModel):
    """One structured item made from a page."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: str
    url: str
    page: str = Field(description="Id of the page it was made from.")
    schema_name: str = Field(serialization_alias="schema")
    schema_hash: str = Field(description="Of the schema as it was then.")
    ordinal: int = Field(description="Of several records of one page.")
    data: dict[str, Any]
    scores: dict[str, Any]
    low_confidence: bool = Field(description="Not to be relied on before a person has looked at it.")
    created: datetime
    request_id: str


class RecordsQuery(Paged):
    low_confidence: bool | None = Field(None, description="Only doubtful records, or only the others.")


class ChangeInfo(BaseModel):
    """What became of one page."""

    kind: Kind
    url: str
    why: str | None = Field(
        description="Of a page that the later crawl lacks: `gone`, `redirect`, ..., or `absent`: no link led there."
    )
    sha256_before: str | None
    sha256: str | None
    before: datetime | None = Field(description="When the earlier crawl fetched it.")
    at: datetime | None = Field(description="When the later crawl fetched or settled it.")


class ChangesQuery(Paged):
    against: str | None = Field(
        None, min_length=1, max_length=100, description="The crawl to compare with; left out: the run before this one."
    )
    kind: Kind | None = Field(None, description="Only changes of this kind.")


class Changes(BaseModel):
    """What changed between two crawls."""

    crawl: str
    against: str
    counts: dict[str, int] | None = Field(description="By kind; on the first page only.")
    items: list[ChangeInfo]
    next: str | None = Field(description="Give it as `cursor` to get the next page; null: this is the last one.")


def record_of(record: Record) -> RecordInfo:
    return RecordInfo.model_validate(
        {
            "id": str(record.n),
            "url": record.url,
            "page": page_id(record.crawl, bytes.fromhex(record.subject)),
            "schema_name": record.schema,
            "schema_hash": record.schema_hash,
            "ordinal": record.ordinal,
            "data": record.data,
            "scores": record.scores,
            "low_confidence": record.low_confidence,
            "created": when(record.created_ms),
            "request_id": record.request_id,
        }
    )


def change_of(change: Change) -> ChangeInfo:
    return ChangeInfo.model_validate(
        {
            "kind": change.kind,
            "url": change.url,
            "why": change.why or None,
            "sha256_before": change.sha256_before,
            "sha256": change.sha256,
            "before": when(change.before_ms),
            "at": when(change.at_ms),
        }
    )
