"""Reviews over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from curtsy.core.record import Review
from curtsy.records.review import Dossier
from curtsy.web.models.asking import CrawlId, Word
from curtsy.web.models.crawls import when
from curtsy.web.models.records import FieldInfo, RecordInfo, record_fields
from curtsy.web.paging import Paged


class WithheldInfo(FieldInfo):
    """A value that is not published, for the reviewer."""

    note: str = Field(description="Why: a short stable word such as `quote_not_found`.")
    claimed_quote: str | None = Field(description="Words that were given for it and do not stand in the page.")


class ReviewItem(RecordInfo):
    """A record that waits for a person, with what is withheld of it."""

    crawl: str
    withheld: list[WithheldInfo]


class SourceInfo(BaseModel):
    """A text that evidence stands in: `text[start:end]` is the quote."""

    page: str = Field(description="Id of the page.")
    url: str
    kind: Literal["text", "structured", "attribute"]
    sha256: str
    text: str


class ReviewInfo(BaseModel):
    """What somebody decided."""

    decision: Literal["approve", "reject", "correct"]
    who: str
    at: datetime
    note: str
    correction: dict[str, Any] | None
    before: dict[str, Any] = Field(description="The record's data before.")
    golden: bool


class DossierInfo(ReviewItem):
    """All that is known of a record: its sources and every decision."""

    sources: list[SourceInfo]
    reviews: list[ReviewInfo]


class ReviewsQuery(Paged):
    crawl: CrawlId | None = None
    schema_name: Word | None = Field(None, alias="schema", description="Only records of this schema.")


class ReviewRequest(BaseModel):
    """A decision."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["approve", "reject", "correct"]
    by: str | None = Field(
        None, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$",
        description="Who decides; left out: the key that asks.",
    )  # fmt: skip
    note: str = Field("", max_length=4000, pattern=r"^[^\x00]*$")
    correction: dict[str, Any] | None = Field(
        None, description="JSON pointer -> the right value, null if there is none; only of `correct`."
    )
    golden: bool = Field(False, description="It shall become a golden case: `curtsy review export-golden` writes them.")

    @model_validator(mode="after")
    def _fits(self) -> ReviewRequest:
        if (self.correction is not None) != (self.decision == "correct"):
            raise ValueError("`correct` needs a correction, and nothing else has one")
        return self


def review_fields(known: Dossier, crawl: str) -> dict[str, Any]:
    """Of a ReviewItem."""
    withheld = [{"note": "", "claimed_quote": None} | one for one in known.record.withheld]
    return record_fields(known.record) | {"crawl": crawl, "withheld": withheld}


def item_of(known: Dossier, crawl: str) -> ReviewItem:
    return ReviewItem.model_validate(review_fields(known, crawl))


def dossier_of(known: Dossier, crawl: str) -> DossierInfo:
    n = known.record.crawl
    sources = [one._asdict() | {"page": f"{n}-{one.page}"} for one in known.sources]
    return DossierInfo.model_validate(
        review_fields(known, crawl) | {"sources": sources, "reviews": [review_of(one) for one in known.history]}
    )


def review_of(review: Review) -> ReviewInfo:
    names = ("decision", "who", "note", "correction", "before", "golden")
    fields = {name: getattr(review, name) for name in names}
    return ReviewInfo.model_validate(fields | {"at": when(review.at_ms)})
