"""Records, and the reviews of people about them."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from curtsy.core.model import hot_value


@hot_value()
class Record:
    """One structured item made from a page or a site."""

    #: number in the store; 0 before it is stored
    n: int = 0
    crawl: int
    #: the page's fingerprint as hexadecimal digits, or `site:<host>`
    subject: str
    #: `page` | `site`
    kind: str = "page"
    schema: str
    #: of the schema as it was when the record was made
    schema_hash: str
    #: position among several records of one page
    ordinal: int = 0
    #: a later extraction of the same subject by the same schema is the next version
    version: int = 1
    #: `published` | `held` (until a person approves it) | `rejected` | `superseded` (by a later version)
    status: str = "published"
    url: str
    #: published values only
    data: dict[str, Any]
    #: the leaves of `data` with rung, verdict and evidence
    fields: tuple[dict[str, Any], ...] = ()
    #: values that are not supported, for reviewers only
    withheld: tuple[dict[str, Any], ...] = ()
    #: paths of withheld fields with contradicting values, about which no person has decided
    contradicted: tuple[str, ...] = ()
    scores: dict[str, Any] = field(default_factory=dict)
    #: share, words, low, reasons
    confidence: dict[str, Any] = field(default_factory=dict)
    #: low confidence: a person should review it
    low_confidence: bool = False
    #: rung -> how many published values came from it
    rungs: dict[str, int] = field(default_factory=dict)
    #: use of a language model for it
    usage: dict[str, Any] = field(default_factory=dict)
    #: why the language model gave no answer: stage, cause, detail, fields; None: the record is complete
    failure: dict[str, Any] | None = None
    #: of a site: number of its newest page when the record was made
    as_of: int = 0
    #: when a person reviewed it; None: never
    reviewed_ms: int | None = None
    created_ms: int = 0
    request_id: str = ""


@hot_value()
class Review:
    """The decision of a person about a record."""

    #: number in the store; 0 before it is stored
    n: int = 0
    record: int
    crawl: int
    #: `approve` | `reject` | `correct` | `choose` | `undo`
    decision: str
    who: str
    at_ms: int
    note: str = ""
    #: of `correct` and `choose`: JSON pointer -> the right value; None: no value
    correction: dict[str, Any] | None = None
    #: the record's data before
    before: dict[str, Any] = field(default_factory=dict)
    #: whether it becomes a golden case
    golden: bool = False
    request_id: str = ""
    #: what it replaced; None: an entry `undo`, or a decision that cannot be undone
    undo: dict[str, Any] | None = None
    #: id of the decision about many records that it belongs to
    batch: str = ""
