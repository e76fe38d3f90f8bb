"""Reviews."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from curtsy.core.record import Record
from curtsy.records import serialize
from curtsy.records.review import ReviewCase
from curtsy.records.review_queue import MOST_AT_ONCE, ManyDecided, ReviewFilter
from curtsy.web.models.fields import CrawlId, Name, Time, Word, fill
from curtsy.web.models.records import FieldInfo, RecordInfo, record_fields
from curtsy.web.paging import Paged


class WithheldInfo(FieldInfo):
    """A value that is not published, for the reviewer."""

    note: str = Field(description="Why: a short stable word such as `quote_not_found`.")
    claimed_quote: str | None = Field(description="The quote given for it, which the page does not contain.")


class ReviewItem(RecordInfo):
    """A record that needs a decision, with its withheld values."""

    crawl: str
    withheld: list[WithheldInfo]


class SourceInfo(BaseModel):
    """A text that contains evidence: `text[start:end]` is the quote."""

    page: str = Field(description="Id of the page.")
    url: str
    kind: Literal["text", "structured", "attribute"]
    sha256: str
    text: str


class ReviewInfo(BaseModel):
    """One decision."""

    decision: Literal["approve", "reject", "correct", "choose", "undo"]
    who: str
    at: Time
    note: str
    correction: dict[str, Any] | None = Field(description="The corrected or chosen values by JSON pointer.")
    before: dict[str, Any] = Field(description="The data of the record before the decision.")
    golden: bool
    batch: str = Field(description="Id of the decision about many records that it belongs to, or empty.")


class RecordReview(ReviewItem):
    """A record with its sources and all decisions."""

    sources: list[SourceInfo]
    reviews: list[ReviewInfo]


class ReviewsQuery(Paged):
    crawl: CrawlId | None = None
    schema_name: Word | None = Field(None, alias="schema", description="Only records of this schema.")
    needs: Literal["record", "field"] | None = Field(
        None, description="`record`: held as a whole; `field`: published, except for contradicted fields."
    )
    reason: Word | None = Field(None, description="Only records that wait for this reason, such as `thin`.")
    host: Name | None = Field(None, description="Only records of this host.")
    field: Name | None = Field(None, description="Only records with a value of this field: `/contact/email`.")
    min_confidence: float | None = Field(None, ge=0, le=1, description="Only if this share of values has evidence.")
    max_confidence: float | None = Field(None, ge=0, le=1, description="Only if no larger share has evidence.")

    @property
    def wanted(self) -> ReviewFilter:
        return ReviewFilter(
            schema=self.schema_name, needs=self.needs, reason=self.reason, host=self.host, field=self.field,
            min_confidence=self.min_confidence, max_confidence=self.max_confidence,
        )  # fmt: skip


class UndoRequest(BaseModel):
    """Who undoes a decision, and why."""

    model_config = ConfigDict(extra="forbid")

    by: str | None = Field(
        None, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$",
        description="Who decides; default: the API key.",
    )  # fmt: skip
    note: str = Field("", max_length=4000, pattern=r"^[^\x00]*$")


class UndoBatchRequest(UndoRequest):
    """A decision about many records to undo."""

    batch: Word = Field(description="`batch` of the answer to the decision.")


class DecideManyRequest(UndoRequest):
    """One decision about many records."""

    decision: Literal["approve", "reject"]
    ids: list[Annotated[int, Field(ge=1, le=2**63 - 1)]] = Field(
        min_length=1, max_length=MOST_AT_ONCE, description="Ids of records. `GET /v1/reviews` is the preview."
    )


class RefusedRecord(BaseModel):
    """A record that was left as it is."""

    id: str
    detail: str


class ManyReviewed(BaseModel):
    """The result of a decision about many records, or of undoing it."""

    batch: str = Field(description="Send it to `POST /v1/reviews/undo`.")
    records: list[str] = Field(description="Ids of the records that changed.")
    refused: list[RefusedRecord]


class ReviewRequest(UndoRequest):
    """A decision."""

    decision: Literal["approve", "reject", "correct", "choose"]
    correction: dict[str, Any] | None = Field(
        None, description="JSON pointer -> the right value, null to remove it; only with `correct`."
    )
    choice: dict[str, Any] | None = Field(
        None,
        description="JSON pointer of a contradicted field -> one of its withheld values, or null; only with `choose`.",
    )
    golden: bool = Field(False, description="Make the record a golden case: `curtsy review export-golden` writes them.")

    @model_validator(mode="after")
    def _fits(self) -> ReviewRequest:
        if (self.correction is not None) != (self.decision == "correct"):
            raise ValueError("`correct` needs a correction; the other decisions must not have one")
        if (self.choice is not None) != (self.decision == "choose"):
            raise ValueError("`choose` needs a choice; the other decisions must not have one")
        return self


def review_fields(record: Record, crawl: str) -> dict[str, Any]:
    """The fields of a ReviewItem."""
    return record_fields(record) | {"crawl": crawl, "withheld": serialize.withheld(record)}


def review_of(known: ReviewCase, crawl: str) -> RecordReview:
    n = known.record.crawl
    return RecordReview.model_validate(
        review_fields(known.record, crawl)
        | {
            "sources": [one._asdict() | {"page": f"{n}-{one.page}"} for one in known.sources],
            "reviews": [fill(ReviewInfo, one) for one in known.history],
        }
    )


def many_of(done: ManyDecided) -> ManyReviewed:
    refused = [RefusedRecord(id=str(n), detail=detail) for n, detail in done.refused]
    return ManyReviewed(batch=done.batch, records=[str(n) for n in done.records], refused=refused)
