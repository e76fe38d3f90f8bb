"""Records and changes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from curtsy.core.record import Record
from curtsy.records.serialize import line
from curtsy.web.models.fields import Time
from curtsy.web.paging import NEXT, Paged

Status = Literal["published", "held", "rejected", "superseded"]
Kind = Literal["new", "changed", "unchanged", "gone", "moved", "unread"]


class LabelInfo(BaseModel):
    """A label of a table cell: `text[start:end]` of the source."""

    kind: Literal["row", "column", "term"]
    text: str
    start: int
    end: int


class PartInfo(BaseModel):
    """A part of a document."""

    kind: Literal["page", "sheet", "slide", "chapter", "section"]
    number: int = Field(description="From 1.")
    label: str = Field(description="Name of a sheet, title of a slide or chapter, printed number of a page; or empty.")


class BoxInfo(BaseModel):
    """A rectangle on a page of a PDF: points (1/72 inch) from the top left corner."""

    page: int = Field(description="From 1.")
    x0: float
    y0: float
    x1: float
    y1: float
    width: float = Field(description="Of the page, in points; 0: unknown.")
    height: float


class EvidenceInfo(BaseModel):
    """A place in a page that supports a value."""

    page: str = Field(description="Id of the page.")
    url: str
    source: Literal["text", "structured", "attribute"]
    locator: str = Field(description="JSON pointer into structured data, or a selector; empty for text.")
    sha256: str = Field(description="Of the source text that `start` and `end` refer to.")
    start: int
    end: int
    quote: str
    visibility: Literal["visible", "collapsed", "screen_reader", "hidden"] = Field(
        description="`collapsed`: a reader must open something first; `screen_reader`: for assistive technology only."
    )
    labels: list[LabelInfo] = Field(description="Of the table cell with the value: rows, then columns; or its term.")
    part: PartInfo | None = Field(description="Page, sheet, slide or chapter of a document; null for other pages.")
    boxes: list[BoxInfo] = Field(description="Where the quote is on pages of a PDF, one per line; else empty.")
    ocr: bool = Field(description="The words were recognized in a picture of the page.")


class FieldInfo(BaseModel):
    """One value of a record, and its evidence."""

    path: str = Field(description="JSON pointer into `data`.")
    value: Any
    rung: str = Field(description="What found it: `structured`, `selector`, `learned`, `llm`, `function` or `person`.")
    verdict: str = Field(description="`supported`, `derived`, `judged`; of withheld values also `unsupported`.")
    note: str = Field(
        description="The rule that derives the value from its quote, if they differ; what was repaired in its JSON."
    )
    confidence: float = Field(
        description="From 0 to 1: by what found it, and how many pages and kinds of sources state the same."
    )
    evidence: list[EvidenceInfo]


class FailureNote(BaseModel):
    """Why a record lacks values that a language model would have been asked for."""

    stage: Literal["extract", "score"]
    cause: str = Field(description="As the cause of the dead letter: `llm_budget`, `llm_unreachable`, ...")
    detail: str
    fields: list[str] = Field(description="Paths of the values without an answer.")


class RecordInfo(BaseModel):
    """One structured item extracted from a page or a site. It contains supported values only."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: str
    url: str
    page: str | None = Field(description="Id of its page; null: it describes a whole site.")
    subject: str = Field(description="The fingerprint of the page, or `site:<host>`.")
    kind: Literal["page", "site"]
    schema_name: str = Field(serialization_alias="schema")
    schema_hash: str = Field(description="Of the schema at that time.")
    ordinal: int = Field(description="Position among the records of one page.")
    version: int = Field(description="Increases with each new extraction by the same schema.")
    status: Status
    data: dict[str, Any]
    fields: list[FieldInfo] = Field(description="The values of `data` with their evidence.")
    contradicted: list[str] = Field(
        description="Paths of fields that are withheld because the sources state different values, until a decision."
    )
    scores: dict[str, Any]
    confidence: dict[str, Any] = Field(
        description="`share` of supported values, `words` of source, `low`, `reasons`, `problems`."
    )
    low_confidence: bool = Field(description="Do not rely on it before a person has reviewed it.")
    rungs: dict[str, int] = Field(description="Number of values by rung.")
    usage: dict[str, Any] = Field(description="Language model requests and tokens used for it.")
    failure: FailureNote | None = Field(
        description="The language model did not answer; null: the record is complete. Replay the dead letter."
    )
    created: Time
    request_id: str


class RecordsQuery(Paged):
    low_confidence: bool | None = Field(None, description="Only records of low confidence, or only the others.")
    status: Status | None = Field(None, description="Default: `published`. The others need the scope `write`.")
    every_schema: bool = Field(False, description="Include records of schemas that the crawl used before.")


class ChangeInfo(BaseModel):
    """The change of one page."""

    kind: Kind
    url: str
    why: str | None = Field(
        description="Why the later crawl lacks the page: `gone`, `redirect`, ..., or `absent`: no link led to it."
    )
    sha256_before: str | None
    sha256: str | None
    before: Time | None = Field(description="When the earlier crawl fetched it.")
    at: Time | None = Field(description="When the later crawl fetched or settled it.")


class ChangesQuery(Paged):
    against: str | None = Field(
        None, min_length=1, max_length=100, description="The crawl to compare with; default: the previous run."
    )
    kind: Kind | None = Field(None, description="Only changes of this kind.")


class Changes(BaseModel):
    """What changed between two crawls."""

    crawl: str
    against: str
    counts: dict[str, int] | None = Field(description="By kind; on the first page only.")
    items: list[ChangeInfo]
    next: str | None = Field(description=NEXT)


def record_of(record: Record) -> RecordInfo:
    return RecordInfo.model_validate(record_fields(record))


def record_fields(record: Record) -> dict[str, Any]:
    """The fields of a RecordInfo."""
    fields = line(record)
    return fields | {"schema_name": fields.pop("schema"), "created": record.created_ms}
