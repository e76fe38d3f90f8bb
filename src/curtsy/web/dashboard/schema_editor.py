"""The schema of the form for a new crawl: a name, column names with types, or a JSON Schema; and its test on a page."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from curtsy.control.crawl_request import request_from
from curtsy.control.project import schema_of
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, Page
from curtsy.export.page_rows import segments_of
from curtsy.grounding import judge
from curtsy.records import plan, schema_trial
from curtsy.records.extraction import Parts
from curtsy.rules.urls import fingerprint, normalise
from curtsy.store import pages
from curtsy.store.engine import Store
from curtsy.web.dashboard.site import PageRequest, filled
from curtsy.web.models.crawls import check_offered

#: characters of a schema in the form
_MOST = 50_000
#: values of a test that are shown
_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialValue:
    path: str
    text: str
    #: whether a crawl would publish it
    published: bool
    rung: str
    verdict: str
    note: str
    quotes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a schema finds on a stored page."""

    page: Page
    values: tuple[TrialValue, ...]


def given_schema() -> str | dict[str, Any] | None:
    """The schema of the submitted form: its own one, else the chosen name."""
    text = filled("schema_text")
    if text is None:
        return filled("schema")
    if len(text) > _MOST:
        raise UsageError(f"The schema has more than {_MOST:,} characters.")
    if not text.startswith("{"):
        return schema_of(",".join(text.splitlines()), filled("schema_per") or "page")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The schema is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError("A JSON Schema is an object: { ... }.")
    return found


def text_of(store: Store, crawl: Crawl, offered: tuple[str, ...]) -> str:
    """The schema of a crawl as text for the form; empty if its name is enough."""
    if crawl.schema is None or crawl.schema in offered:
        return ""
    found = plan.of(store, crawl)
    if found is None or found.function is not None or not found.schema.leaves:
        return ""
    return json.dumps({"title": found.schema.name, **found.schema.json_schema}, ensure_ascii=False, indent=2)


def tested(req: PageRequest) -> Trial:
    """Test the schema of the form on the stored page that it names. It sends no request to a model."""
    schema = given_schema()
    if schema is None:
        raise UsageError("Choose a schema, or enter one.")
    # The rules of the API hold: no code paths, only schemas that the settings list.
    check_offered(request_from({"schema": schema}), req.settings, "form")
    page = _page(req, filled("test_page") or "")
    with closing(segments_of(req.settings)) as segments:
        parts = Parts(req.settings, req.store, segments)
        found = schema_trial.schema_of(schema)
        fields = schema_trial.trial(parts, found, page)
    values = [
        TrialValue(
            path=one.path, text=one.value if isinstance(one.value, str) else json.dumps(one.value, ensure_ascii=False),
            published=judge.is_published(one, found.leaf_for(one.path)), rung=one.rung.value, verdict=one.verdict.value,
            note=one.note, quotes=tuple(evidence.quote for evidence in one.evidence[:2]),
        )
        for one in fields[:_SHOWN]
    ]  # fmt: skip
    return Trial(page=page, values=tuple(values))


def _page(req: PageRequest, named: str) -> Page:
    """By the id of a page, or the newest one of a URL."""
    with req.store.read() as tx:
        found = pages.by_id(tx, named) if named and "://" not in named else None
        url = normalise(named) if "://" in named else None
        if url is not None:
            newest = pages.where(tx, "p.fp = :fp", {"fp": fingerprint(url)}, "p.n DESC", 1)
            found = newest[0][1] if newest else None
    if found is None:
        raise UsageError("Name a stored page to test the schema on: the URL or the id of a page of an earlier crawl.")
    return found
