"""Try a schema on one stored page: values with their quotes. Nothing is stored, requested or sent to a model."""

from __future__ import annotations

from typing import Any

from curtsy.content.reading import ParseTimeout, within
from curtsy.core.claims import Field
from curtsy.core.errors import UsageError
from curtsy.core.model import Page
from curtsy.extract import llm, record_claims
from curtsy.grounding import judge
from curtsy.grounding import schema as schemas
from curtsy.grounding.schema import Schema
from curtsy.records.extraction import Parts, page_sources


def schema_of(given: str | dict[str, Any]) -> Schema:
    """A schema by its name, or a JSON Schema; UsageError if it cannot be used."""
    return schemas.inline(given) if isinstance(given, dict) else schemas.load(given)


def trial(parts: Parts, schema: Schema, page: Page) -> list[Field]:
    """What the sources without a model find on a page, published and withheld values. UsageError if unreadable."""
    found = page_sources(parts, page.crawl, page.fp.hex())
    if found is None:
        raise UsageError("This page has no stored content that can be read. Choose another page.")
    seconds = parts.settings.parse_timeout_s
    try:
        extraction = within(seconds, record_claims.extract, schema, [found], None, None)
        return list(within(seconds, judge.settle, schema, extraction.claims, llm.prompt_texts(schema.leaves)))
    except ParseTimeout:
        raise UsageError(f"Reading the page took more than {seconds:g} s. Choose another page.") from None
