"""Values of a page or a site, and where they are found: the values of extraction, from claim to judged field.

    Source      a piece of a page that can support claims: its text, its structured data, its attributes
    Claim       a value for one leaf of a schema, as a source of values found it, with its place in a page
    Evidence    the place in a source that supports a value
    Field       a claim after grounding: its verdict, and the evidence for it

This module only holds values; `grounding/judge.py` judges them. Paths of leaves and places in structured data are JSON
pointers (RFC 6901).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol

from curtsy.core.errors import CurtsyError
from curtsy.core.model import hot_value
from curtsy.core.text_layout import EMPTY_LAYOUT, Label, PageBox, Part, TextLayout, Visibility

#: of a JSON value; deeper parts of one with U+0000 are omitted
_MAX_DEPTH = 200


class SourceKind(StrEnum):
    TEXT = "text"  # what a reader sees
    STRUCTURED = "structured"  # JSON-LD, microdata, RDFa, microformats, meta: one JSON document, with JSON pointers
    ATTRIBUTE = "attribute"  # of an element that a selector finds


class Rung(StrEnum):
    """A source of values, cheapest first. Each is used only for values that the previous ones did not find."""

    STRUCTURED = "structured"
    SELECTOR = "selector"  # CSS, XPath, or a pattern over the text
    LEARNED = "learned"  # a selector that was learned from verified values
    LLM = "llm"
    FUNCTION = "function"  # an extractor of the user
    PERSON = "person"  # a reviewer's correction


class Verdict(StrEnum):
    SUPPORTED = "supported"  # the source contains the value literally
    DERIVED = "derived"  # it follows from its quote by the rules of its type
    JUDGED = "judged"  # a boolean or one of a list of words: a judgment of the model
    UNSUPPORTED = "unsupported"  # withheld


class PageContext(Protocol):
    """What a page says about itself: evidence that a quote relates to its field."""

    @property
    def titles(self) -> tuple[str, ...]: ...

    @property
    def people(self) -> tuple[str, ...]: ...

    @property
    def headings(self) -> frozenset[int]: ...

    @property
    def main_heading(self) -> tuple[int, int] | None: ...

    @property
    def prices(self) -> tuple[tuple[int, int], ...]: ...

    @property
    def marked(self) -> tuple[tuple[int, int, str], ...]: ...

    @property
    def foreign(self) -> tuple[tuple[int, int], ...]: ...

    @property
    def headed(self) -> tuple[tuple[int, int], ...]: ...

    def states(self, path: str, value: Any) -> bool | None: ...


def without_nul(value: Any, depth: int = 0) -> Any:
    """Return a text or JSON value with U+FFFD for each U+0000, which PostgreSQL rejects. Spans stay the same."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if not isinstance(value, list | dict):
        return value
    if depth >= _MAX_DEPTH:
        return None
    if isinstance(value, list):
        return [without_nul(one, depth + 1) for one in value]
    return {without_nul(key): without_nul(one, depth + 1) for key, one in value.items()}


@dataclass(frozen=True)
class Source:
    """A piece of a page. Spans are offsets in `text`, which has no U+0000; neither have the values of claims."""

    kind: SourceKind
    #: id of the page, and its URL
    page: str
    url: str
    text: str
    #: JSON pointer into the structured data, or the selector; empty for text
    locator: str = ""
    #: layout of its spans: visibility, labels of cells, pages of a document
    layout: TextLayout = field(default_factory=lambda: EMPTY_LAYOUT, compare=False, repr=False)
    #: of the page, as a language tag; None: unknown
    language: str | None = field(default=None, compare=False)
    #: what the page says about itself, computed on first use; None: nothing is known
    context: PageContext | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if "\0" in self.text:
            object.__setattr__(self, "text", without_nul(self.text))

    @property
    def titles(self) -> tuple[str, ...]:
        """The title and main headings of the page."""
        return () if self.context is None else self.context.titles

    @property
    def people(self) -> tuple[str, ...]:
        """Those that the page names as authors."""
        return () if self.context is None else self.context.people

    @property
    def headings(self) -> frozenset[int]:
        """Where the headings begin in the text."""
        return frozenset() if self.context is None else self.context.headings

    @property
    def main_heading(self) -> tuple[int, int] | None:
        """Where the heading of the main item is; None: no heading, or several that could be."""
        return None if self.context is None else self.context.main_heading

    @property
    def prices(self) -> tuple[tuple[int, int], ...]:
        """Parts of the text that the markup calls prices."""
        return () if self.context is None else self.context.prices

    @property
    def marked(self) -> tuple[tuple[int, int, str], ...]:
        """Short parts of the text with the words that the markup has for them: `job location address locality`."""
        return () if self.context is None else self.context.marked

    def states(self, path: str, value: Any) -> bool | None:
        """Return whether the page's structured data has this value under such a key; None: there is no such key."""
        return None if self.context is None else self.context.states(path, value)

    def is_foreign(self, start: int, end: int, *, by_heading: bool = False) -> bool:
        """Return whether others say text[start:end], or it is about others; `by_heading`: if a heading says so."""
        found = () if self.context is None else self.context.headed if by_heading else self.context.foreign
        return any(first <= start and end <= last for first, last in found)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()


@hot_value()
class Claim:
    """A value for one leaf, not yet judged."""

    #: of the leaf in the record: `/contact/email`, `/sustainability_claims/0`
    path: str
    value: Any
    rung: Rung
    #: what it was read from
    source: Source
    #: words of the source that support it, as its extractor quotes them; None: search for the value itself
    quote: str | None = None
    #: the exact place of the value in the source, if it is known: a table cell. Its labels name the value
    span: tuple[int, int] | None = None
    #: what was repaired in the JSON that it was read from
    repaired: tuple[str, ...] = ()
    #: `failure` | `negated`: the organization says that it did not do so, or failed. Such a value is never published
    against: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.value, str | list | dict):
            object.__setattr__(self, "value", without_nul(self.value))
        if self.quote is not None:
            object.__setattr__(self, "quote", without_nul(self.quote))


@hot_value()
class Evidence:
    """A span of a source: `source.text[start:end] == quote`."""

    page: str
    url: str
    source: SourceKind
    #: JSON pointer or selector; empty for text
    locator: str
    #: of the source's text
    sha256: str
    start: int
    end: int
    quote: str
    #: whether a reader sees it without opening something first
    visibility: Visibility = Visibility.VISIBLE
    #: of the table cell with the value: row labels, then column labels, or the term of a definition
    labels: tuple[Label, ...] = ()
    #: page, sheet, slide or chapter of a document
    part: Part | None = None
    #: of the quote on a page of a PDF, one per line
    boxes: tuple[PageBox, ...] = ()
    #: the words were recognized in a picture
    ocr: bool = False


@hot_value()
class Field:
    """One leaf of a record after grounding. An unsupported one keeps its value for the reviewer only."""

    path: str
    value: Any
    rung: Rung
    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()
    #: why it is not supported, or by which rule it was derived: a short stable word such as `copyright_line`
    note: str = ""
    #: quote of the claim that was not found, for the reviewer
    claimed_quote: str | None = None


@hot_value()
class Confidence:
    """How reliable a record is."""

    #: share of the fields with a value that have evidence
    share: float
    #: number of words in the source text
    words: int
    low: bool
    #: `thin` (under 100 words) | `unsupported` (share under the threshold) | `judged` | `empty` | `disputed` | ...;
    #: `contradicted` alone does not make it low
    reasons: tuple[str, ...] = ()


@hot_value()
class Usage:
    """The questions that a record sent to a language model."""

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            cached=self.cached + other.cached,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost=self.cost + other.cost,
        )


@hot_value()
class Extraction:
    """All claims for one record, preferred ones first."""

    claims: tuple[Claim, ...] = ()
    usage: Usage = field(default_factory=Usage)
    #: why the language model did not answer for `unanswered`; None: it did, or was not asked
    fault: CurtsyError | None = None
    #: paths of the leaves for which there is no answer
    unanswered: tuple[str, ...] = ()
    #: leaves in the questions to the model
    asked: tuple[str, ...] = ()
