"""The work of the stages: extract from a page or a site, score, and build records.

    extract    claims of all sources (extract/record_claims.py), judged (grounding/judge.py): data, evidence, withheld
               values
    score      by the crawl's rubric, from evidence only
    store      the records

Each stage returns JSON, which is kept until the record is stored. Nothing here writes; stages.py does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from curtsy.content.parser_limits import is_heavy
from curtsy.content.reading import ParseTimeout, within
from curtsy.core import claims
from curtsy.core.claims import Confidence, Extraction, Field, Rung, Verdict
from curtsy.core.errors import CurtsyError, Damaged, UsageError
from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.core.settings import Settings
from curtsy.extract import llm, page_selection, record_claims
from curtsy.extract.document_labels import labels_of
from curtsy.extract.record_claims import Candidate, PageSources
from curtsy.extract.verification import Check
from curtsy.grounding import judge, scoring
from curtsy.grounding.contradictions import CONTRADICTED
from curtsy.grounding.page_schema import Described, Stored, describe, extractors, page_facts
from curtsy.grounding.schema import Schema
from curtsy.records import crawl_model, evidence, page_templates, selector_learning, verification
from curtsy.records import plan as plans
from curtsy.records.plan import Plan
from curtsy.services.document_process import limits_of
from curtsy.services.reader_process import heavy_page_reader
from curtsy.services.stored_files import file_of
from curtsy.store import pages, sites
from curtsy.store.engine import Store
from curtsy.store.outbox import Row
from curtsy.store.segments import SegmentStore, read_page
from curtsy.store.sources import Source

T = TypeVar("T")
#: below this number of words, extracted values are unreliable
THIN_WORDS = judge.THIN_WORDS
#: extracting and checking the values of a schema may take this many times as long as reading the page
_GROUNDING = 10
#: a cause that is not a failure: the question of the stage waits for a batch
WAITS_FOR_BATCH = "llm_batch"
#: validation problems kept with a record
_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a process that stages need; Services has them, too."""

    settings: Settings
    store: Store
    segments: SegmentStore


class StageFault(CurtsyError):
    """A stage failed: the cause, whether a retry may help, and the minimum delay before it."""

    def __init__(self, cause: str, detail: str, again: bool = True, after_s: float = 0.0) -> None:
        super().__init__(detail)
        self.cause, self.detail, self.again, self.after_s = cause, detail, again, after_s


def plan_of(parts: Parts, crawl: Crawl) -> Plan:
    found = plans.of(parts.store, crawl)
    if found is None:
        raise StageFault("no_such_schema", f"the schema {crawl.schema!r} is unknown in this process", False)
    return found


def _check_known(missing: str | None) -> None:
    if missing is not None:
        detail = f"the function {missing} is unknown in this process: replay it, and resume the crawl from Python"
        raise StageFault("no_such_function", detail, False)


# extract


def extract(parts: Parts, crawl: Crawl, row: Row, _found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the items of a page or a site, as JSON."""
    _check_known(plans.missing_extractor(crawl))
    plan = plan_of(parts, crawl)
    host = sites.host_of(row.subject)
    if host is not None:
        return _of_site(parts, crawl, row, plan, host)
    stored = _stored(parts, row.crawl, row.subject)
    if stored is None:
        return []  # it was deleted, or its body was not kept
    is_file = stored.page.document is not None
    if plan.function is None and not page_selection.applies(
        plan.schema, stored.page.url, stored.page.title, is_file=is_file
    ):
        return []
    stored = _with_file(parts, stored)
    if plan.function is not None:
        function = extractors[plan.function]
        if function is page_facts:
            return [_of_page(_in_time(parts, stored, describe, stored))]
        return [_of_facts(facts) for facts in function(stored)]  # a function of a user has no time limit
    found = collect_claims(parts, crawl, row, plan.schema, [_sources(parts, stored)])
    return [{**item, "url": stored.page.url} for item in found]


def _of_site(parts: Parts, crawl: Crawl, row: Row, plan: Plan, host: str) -> list[dict[str, Any]]:
    with parts.store.read() as tx:
        as_of = sites.newest_page(tx, row.crawl, host)
        listed = sites.pages_of(tx, row.crawl, host)
    candidates = [Candidate(url, title, is_file=is_file) for _, url, title, is_file in listed]
    chosen, pages_of_site = _chosen(parts, row.crawl, plan.schema, candidates, {url: fp for fp, url, _, _ in listed})
    found = collect_claims(parts, crawl, row, plan.schema, pages_of_site)
    home = chosen[0] if chosen else f"https://{host}/"
    return [{**item, "url": home, "as_of": as_of} for item in found]


def _chosen(
    parts: Parts, crawl: int, schema: Schema, candidates: Sequence[Candidate], fps: dict[str, str]
) -> tuple[list[str], list[PageSources]]:
    """Return the URLs for the record of a site, and their pages. Chosen pages say what the documents are."""
    files = {one.url for one in candidates if one.is_file}
    chosen = record_claims.choose(schema, candidates)
    read = {url: _read(parts, crawl, fps[url]) for url in chosen if url not in files}
    documents = [page.document for page in read.values() if page is not None and page.document is not None]
    labels = labels_of(documents, files) if files else {}
    if labels:
        chosen = record_claims.choose(schema, [one._replace(label=labels.get(one.url)) for one in candidates])
    for url in chosen:
        page = read[url] if url in read else _read(parts, crawl, fps[url])
        if page is not None and url in labels:
            roles = page_selection.roles_of(url, page.title, labels[url], is_file=True)
            page = replace(page, roles=page.roles | roles)
        read[url] = page
    return chosen, [page for url in chosen if (page := read[url]) is not None]


def _read(parts: Parts, crawl: int, subject: str) -> PageSources | None:
    stored = _stored(parts, crawl, subject)
    return None if stored is None else _sources(parts, _with_file(parts, stored))


def _stored(parts: Parts, crawl: int, subject: str) -> Stored | None:
    with parts.store.read() as tx:
        page = pages.get(tx, crawl, bytes.fromhex(subject))
        if page is None:
            return None
        try:
            record = read_page(tx, parts.segments, page)
        except Damaged as error:
            raise StageFault("damaged", str(error), False) from error
    return None if record is None else Stored(page, record.body, page.content_type)


def _with_file(parts: Parts, stored: Stored) -> Stored:
    """Read the document in the body, if it is one: in a process of its own, with its own limits of time and memory."""
    limits = limits_of(parts.settings)
    return stored._replace(file=file_of(stored.body, stored.content_type, stored.page.url, limits))


def _sources(parts: Parts, stored: Stored) -> PageSources:
    page = stored.page
    given = (page.id, page.url, stored.body, stored.content_type, stored.file)
    return _in_time(parts, stored, record_claims.sources_of, *given)


def page_sources(parts: Parts, crawl: int, subject: str) -> PageSources | None:
    """A stored page as an extraction reads it now; None if it cannot be read."""
    try:
        return _read(parts, crawl, subject)
    except StageFault:
        return None


def _in_time(parts: Parts, stored: Stored, work: Callable[..., T], *given: Any) -> T:
    """Run `work`. A page that exceeds its time is a dead letter.

    The HTML parser cannot be interrupted here, so another process tries a heavy page first.
    """
    seconds, page = parts.settings.parse_timeout_s, stored.page
    try:
        if stored.file is None and is_heavy(stored.body):
            heavy_page_reader.check(seconds, stored.body, stored.content_type, page.url)
        return within(seconds, work, *given)
    except ParseTimeout as error:
        raise _too_slow([page.url], seconds) from error


def _too_slow(urls: Sequence[str], seconds: float) -> StageFault:
    named = f"{urls[0]} and {len(urls) - 1} others" if len(urls) > 1 else urls[0]
    return StageFault("parse_timeout", f"reading {named} took more than {seconds:g} s", False)


def collect_claims(
    parts: Parts, crawl: Crawl, row: Row, schema: Schema, found: Sequence[PageSources]
) -> list[dict[str, Any]]:
    """Return one item from those pages, or none if they state nothing.

    If the model has failed for the last time, the item has what the other sources found, and its `failure`.
    """
    if not found:
        return []
    seconds = parts.settings.parse_timeout_s * _GROUNDING * len(found)
    try:
        model = crawl_model.model_of(parts.store, parts.settings, crawl, row.subject)
        memory = _memory(parts, schema, found, has_model=model is not None)
        extraction = within(seconds, record_claims.extract, schema, found, model, memory)
        fields = within(seconds, judge.settle, schema, extraction.claims, llm.prompt_texts(schema.leaves))
    except ParseTimeout as error:
        raise _too_slow([page.url for page in found], seconds) from error
    extraction, fields = _verified(parts, crawl, row, schema, found, extraction, fields)
    fault = None if extraction.fault is None else _no_answer(parts, extraction.fault)
    if fault is not None and not _is_last(parts, row, fault):
        raise fault
    if memory is not None:
        page_templates.note(parts.store, crawl, row.subject, memory, extraction, fields)
    words = sum(page.words for page in found)
    item = item_of(schema, fields, judge.confidence(schema, fields, words))
    if fault is not None and not item["fields"]:
        raise fault  # there is nothing to publish without the model
    if not fields:
        return []
    item |= {"sources": _cited(fields, extraction, found), "usage": asdict(extraction.usage)}
    return [item if fault is None else item | {"failure": _failure("extract", fault, extraction.unanswered)}]


def _verified(
    parts: Parts, crawl: Crawl, row: Row, schema: Schema, found: Sequence[PageSources], extraction: Extraction,
    fields: list[Field],
) -> tuple[Extraction, list[Field]]:  # fmt: skip
    """Withhold values that the models do not confirm, if the crawl or the settings require it. A fault leaves the rest
    unverified.
    """
    settings = parts.settings
    verify = settings.llm_verify if crawl.verify is None else crawl.verify
    wanted = [(Check.VALUE, crawl_model.model_of)] if verify else []
    wanted.append((Check.ATTRIBUTION, crawl_model.second_model_of))
    texts = {one.sha256: one.text for one in (page.text for page in found)}
    for check, model_of in wanted:
        model = model_of(parts.store, settings, crawl, row.subject)
        if model is None:
            continue
        try:
            made = verification.checked(check, model, schema, found[0].url, fields, texts)
        except llm.ModelFault as fault:
            fault.unanswered = ()
            return replace(extraction, usage=extraction.usage + fault.usage, fault=extraction.fault or fault), fields
        fields = made.fields
        extraction = replace(extraction, usage=extraction.usage + made.usage)
    return extraction, fields


def _cited(fields: Sequence[Field], extraction: Extraction, found: Sequence[PageSources]) -> list[dict[str, Any]]:
    """Return the texts of the pages, and the other sources of evidence."""
    cited = {one.sha256 for field in fields for one in field.evidence}
    texts = [page.text for page in found]
    texts += [claim.source for claim in extraction.claims if claim.source.sha256 in cited]
    kept = {(one.page, one.sha256): one for one in texts}
    return [source_of(one) for one in kept.values()]


def _memory(
    parts: Parts, schema: Schema, found: Sequence[PageSources], *, has_model: bool
) -> page_templates.PageMemory | None:
    """What was learned from pages of the same template; only web pages with a record of their own have one."""
    if not parts.settings.learn_selectors or schema.per != "page" or len(found) != 1 or found[0].document is None:
        return None
    if not has_model and not selector_learning.has_templates(parts.store, schema):
        return None
    return selector_learning.recall(parts.store, parts.segments, parts.settings, schema, found[0])


def source_of(one: claims.Source) -> dict[str, Any]:
    """A source as it is stored."""
    page = pages.key_of(one.page)[1].hex()
    return {"page": page, "sha256": one.sha256, "kind": one.kind.value, "url": one.url, "text": one.text}


def _no_answer(parts: Parts, error: CurtsyError) -> StageFault:
    if not isinstance(error, llm.ModelFault):
        return StageFault("llm_missing", str(error), False)
    after_s = min(error.retry_after_s or 0.0, parts.settings.llm_retry_after_cap_s)
    return StageFault(error.cause, error.detail, error.again, after_s)


def _is_last(parts: Parts, row: Row, fault: StageFault) -> bool:
    """Return whether the stage is not tried again after this fault."""
    return not fault.again or (row.attempts >= parts.settings.stage_attempts and fault.cause != WAITS_FOR_BATCH)


def _failure(stage: str, fault: StageFault, unanswered: Sequence[str] = ()) -> dict[str, Any]:
    """What a record says about a model that did not answer."""
    return {"stage": stage, "cause": fault.cause, "detail": writable(fault.detail), "fields": list(unanswered)}


def failure_in(result: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the failure of the model that a stage's result notes."""
    return next((one["failure"] for one in result if one.get("failure")), None)


def writable(text: str) -> str:
    """Error text may contain anything: databases reject lone surrogates, and PostgreSQL rejects NUL."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def item_of(schema: Schema, fields: Sequence[Field], confidence: Confidence) -> dict[str, Any]:
    """Split fields into published values with their evidence, and withheld values."""
    published = [field for field in fields if judge.is_published(field, schema.leaf_for(field.path))]
    data = judge.assemble(schema, fields)
    problems = schema.validate(data)
    reasons = [*confidence.reasons, *(("invalid",) if problems else ())]
    return {
        "data": data,
        "fields": [field_of(field) for field in published],
        "withheld": [field_of(field) for field in fields if field not in published],
        "confidence": {
            "share": _share(confidence),
            "words": confidence.words,
            "low": confidence.low or bool(problems),
            "reasons": reasons,
            **({"problems": problems[:_PROBLEMS]} if problems else {}),
        },
        "rungs": dict(Counter(field.rung.value for field in published)),
    }


def _share(confidence: Confidence) -> float:
    """The rounded share; 1.0 means that every value has evidence and none is contradicted."""
    return round(confidence.share, 4) if confidence.share == 1 else min(round(confidence.share, 4), 0.9999)


def contradicted_in(withheld: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The paths of fields with contradicting values."""
    return tuple(dict.fromkeys(one["path"] for one in withheld if one.get("note") == CONTRADICTED))


def _of_page(page: Described) -> dict[str, Any]:
    """The item of the schema `page`."""
    sources = {one.source.sha256: one.source for one in page.cited}
    return _of_facts(page.facts) | {
        "fields": [field_of(one.field) for one in page.cited],
        "sources": [source_of(one) for one in sources.values()],
    }


def _of_facts(facts: dict[str, Any]) -> dict[str, Any]:
    words = int(facts.get("words") or 0)
    low = words < THIN_WORDS
    confidence = {"share": 1.0, "words": words, "low": low, "reasons": ["thin"] if low else []}
    return {
        "data": facts,
        "confidence": confidence,
        "rungs": {Rung.FUNCTION.value: len(facts)},
        "url": facts.get("url"),
    }


# Fields as JSON


def field_of(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {
        "path": field.path,
        "value": field.value,
        "rung": field.rung.value,
        "verdict": field.verdict.value,
        "evidence": [evidence.to_json(one) for one in field.evidence],
    }
    optional = {"note": field.note, "claimed_quote": field.claimed_quote}
    return found | {name: value for name, value in optional.items() if value}


def field_from(data: dict[str, Any]) -> Field:
    """The inverse of `field_of`."""
    return Field(
        path=data["path"], value=data["value"], rung=Rung(data["rung"]), verdict=Verdict(data["verdict"]),
        evidence=tuple(map(evidence.from_json, data["evidence"])), note=data.get("note", ""),
        claimed_quote=data.get("claimed_quote"),
    )  # fmt: skip


# score


def score_items(parts: Parts, crawl: Crawl, row: Row, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the scores of each item; their reasons quote evidence of published fields only."""
    _check_known(plans.missing_scorer(parts.store, crawl))
    plan = plan_of(parts, crawl)
    try:
        return [scores_of(parts, crawl, row.subject, plan, item) for item in found["extract"]]
    except StageFault as fault:
        if not fault.cause.startswith("llm_") or not _is_last(parts, row, fault):
            raise
        # All scores of a subject are made in the same way: scores by a model and by patterns are not comparable.
        made = [scores_of(parts, crawl, row.subject, plan, item, alone=True) for item in found["extract"]]
        return [one | {"failure": _failure("score", fault)} for one in made]


def scores_of(
    parts: Parts, crawl: Crawl, subject: str, plan: Plan, item: dict[str, Any], *, alone: bool = False
) -> dict[str, Any]:
    """Return the scores of an item; `alone` asks no model."""
    confidence = item["confidence"]
    scores = {
        "words": confidence["words"],
        "thin": confidence["words"] < THIN_WORDS,
        "low_confidence": confidence["low"],
    }
    if plan.rubric is None:
        return scores
    fields = [field_from(data) for data in item.get("fields", ())]
    try:
        model = None if alone else crawl_model.model_of(parts.store, parts.settings, crawl, subject)
        ask = None if model is None else model.question
        found = scoring.score(plan.rubric, plan.schema.name, item["data"], fields, ask)
    except llm.ModelFault as error:
        raise _no_answer(parts, error) from error
    except UsageError as error:
        raise StageFault("function_failed", f"{plan.rubric.name}: {error}"[:500], False) from error
    return scores | found


# store


def records_of(
    crawl: Crawl, schema_hash: str, row: Row, found: dict[str, Any], now_ms: int
) -> list[tuple[Record, list[Source]]]:
    """Return the records to write, each with the sources of its evidence."""
    schema = crawl.schema or ""
    made = []
    for ordinal, (item, scored) in enumerate(zip(found["extract"], found["score"], strict=True)):
        scores = {name: value for name, value in scored.items() if name != "failure"}
        low = bool(item["confidence"]["low"])
        record = Record(
            crawl=row.crawl, subject=row.subject, kind="page" if sites.host_of(row.subject) is None else "site",
            schema=schema, schema_hash=schema_hash, ordinal=ordinal, status="held" if low else "published",
            url=str(item.get("url") or row.payload.get("url") or ""), data=item["data"],
            fields=tuple(item.get("fields", ())), withheld=tuple(item.get("withheld", ())),
            contradicted=contradicted_in(item.get("withheld", ())), scores=scores,
            confidence=item["confidence"], low_confidence=low, rungs=item["rungs"], usage=item.get("usage", {}),
            as_of=int(item.get("as_of", 0)), created_ms=now_ms, request_id=row.request_id,
            failure=item.get("failure") or scored.get("failure"),
        )  # fmt: skip
        made.append((record, [Source(**source) for source in item.get("sources", ())]))
    return made
