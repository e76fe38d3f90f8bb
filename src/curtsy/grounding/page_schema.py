"""The schema `page`: the metadata of a page as it is. No model, no judgment, one record per page."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from curtsy.content.document import Document
from curtsy.content.documents.model import FileText
from curtsy.content.head import is_html
from curtsy.core.claims import without_nul
from curtsy.core.model import Page
from curtsy.grounding import page_evidence
from curtsy.grounding.page_evidence import Cited

_HEADINGS = 100
_HEADING_LENGTH = 300


class Stored(NamedTuple):
    """A stored page: the input of a function that extracts."""

    page: Page
    body: bytes
    content_type: str | None
    #: the document in the body, if it is one
    file: FileText | None = None


class Described(NamedTuple):
    """The metadata of a page, and the evidence for it."""

    facts: dict[str, Any]
    cited: list[Cited]


def page_facts(source: Stored) -> list[dict[str, Any]]:
    """Return the metadata of a page."""
    return [describe(source).facts]


def describe(source: Stored) -> Described:
    """Return the metadata of a page with its evidence."""
    page = source.page
    facts: dict[str, Any] = {"url": page.url, "title": page.title, "description": None, "language": page.language}
    facts |= {"canonical": page.canonical, "headings": [], "structured": [], "words": 0}
    if source.file is not None:
        facts |= without_nul(_of_file(source.file))
        return Described(facts, page_evidence.of_file(page.id, page.url, source.file, facts))
    if is_html(source.content_type, source.body):
        document = Document.parse(source.body, source.content_type, page.url)
        structured = _structured(document)
        headings, visible = page_evidence.headings(document, _HEADINGS, _HEADING_LENGTH)
        facts |= {"title": document.title, "language": document.language, "canonical": document.canonical}
        facts |= {"headings": [{"level": one.level, "text": one.text} for one in headings]}
        facts |= {"structured": structured, "words": len(visible.text.split()), "description": _description(structured)}
        return Described(facts, page_evidence.of_html(page.id, document, facts, headings, visible))
    if (source.content_type or "").startswith("text/"):
        facts["words"] = len(source.body.split())
    return Described(facts, [])


def _of_file(file: FileText) -> dict[str, Any]:
    headings = [
        {"level": one.level, "text": file.text[one.start : one.end][:_HEADING_LENGTH]}
        for one in file.headings[:_HEADINGS]
    ]
    found = {"headings": headings, "words": len(file.text.split())}
    return found | {name: value for name in ("title", "language") if (value := getattr(file, name))}


def _structured(document: Document) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = _finite(document.structured())
    except RecursionError:  # no real page nests so deeply
        return []
    return found


def _description(structured: list[dict[str, Any]]) -> str | None:
    for kind, name in (("meta", "description"), ("opengraph", "og:description")):
        for one in structured:
            value = one["data"].get(name) if one["kind"] == kind and isinstance(one["data"], dict) else None
            value = value[0] if isinstance(value, list) and value else value
            if isinstance(value, str) and value.strip():
                return value.strip()
    return None


def _finite(value: Any) -> Any:
    """Remove numbers that JSON does not have; a page's own data may contain them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list) else value


#: schema -> the function that makes its items from a page; extract/record_claims.py handles all other schemas
extractors: dict[str, Callable[[Stored], list[dict[str, Any]]]] = {"page": page_facts}
