"""Records and changes over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from curtsy.core.record import Record
from curtsy.records.serialize import line
from curtsy.store.changes import Change
from curtsy.web.models.crawls import when
from curtsy.web.paging import Paged

Status = Literal["published", "held", "rejected", "superseded"]
Kind = Literal["new", "changed", "unchanged", "gone", "moved", "unread"]


class EvidenceInfo(BaseModel):
    """A place in a page that supports a value."""

    page: str = Field(description="Id of the page.")
    url: str
    source: Literal["text", "structured", "attribute"]
    locator: str = Field(description="JSON pointer into structured data, or a selector; empty for text.")
    sha256: str = Field(description="Of the source's text, in which `start` and `end` count.")
    start: int
    end: int
    quote: str


class FieldInfo(BaseModel):
    """One value of a record, and what it rests on."""

    path: str = Field(description="JSON pointer into `data`.")
    value: Any
    rung: str = Field(description="Who found it: `structured`, `selector`, `llm`, `function` or `person`.")
    verdict: str = Field(description="`supported`, `derived`, `judged`; of withheld values also `unsupported`.")
    note: str = Field(description="By which rule it follows from its quote, where it does not stand there as it is.")
    evidence: list[EvidenceInfo]


class RecordInfo(BaseModel):
    """One structured item made from a page or a site. What is not supported is not in it."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: str
    url: str
    page: str | None = Field(description="Id of the page it was made from; null: it was made from a site.")
    subject: str = Field(description="The page's fingerprint, or `site:<host>`.")
    kind: Literal["page", "site"]
    schema_name: str = Field(serialization_alias="schema")
    schema_hash: str = Field(description="Of the schema as it was then.")
    ordinal: int = Field(description="Of several records of one page.")
    version: int = Field(description="Later extractions of the same by the same schema count on.")
    status: Status
    data: dict[str, Any]
    fields: list[FieldInfo] = Field(description="The values of `data` with their evidence.")
    scores: dict[str, Any]
    confidence: dict[str, Any] = Field(
        description="`share` of supported values, `words` of source, `low`, `reasons`, `problems`."
    )
    low_confidence: bool = Field(description="Not to be relied on before a person has looked at it.")
    rungs: dict[str, int] = Field(description="How many values came from which rung.")
    usage: dict[str, Any] = Field(description="What a language model was asked for it.")
    created: datetime
    request_id: str


class RecordsQuery(Paged):
    low_confidence: bool | None = Field(None, description="Only doubtful records, or only the others.")
    status: Status | None = Field(
        None, description="Left out: `published`. The others are shown to the scope `write` only."
    )
    every_schema: bool = Field(False, description="Also records of schemas that the crawl had before.")


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
    return RecordInfo.model_validate(record_fields(record))


def record_fields(record: Record) -> dict[str, Any]:
    """Of a RecordInfo."""
    told = line(record)
    told["schema_name"] = told.pop("schema")
    return told | {"created": when(record.created_ms)}


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
