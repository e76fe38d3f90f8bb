"""Grounding: which claims their sources support, and what is published of a record.

    judge        one claim -> a field with its verdict and evidence
    settle       all claims of a record -> its fields: the first grounded claim of a leaf wins, lists are merged
    confidence   how reliable the record is
    assemble     the record's data: published values only

Pure: no I/O, and nothing raises for any page or model output. docs/explanation/records.md describes the rules,
core/claims.py the terms claim, rung, evidence and field.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from curtsy.core.claims import Claim, Confidence, Evidence, Field, Rung, Source, SourceKind, Verdict
from curtsy.grounding import attribution, json_pointer, relation, value_types
from curtsy.grounding.contradictions import CONTRADICTED, JudgedClaim
from curtsy.grounding.folded_text import fold, needles, occurrences
from curtsy.grounding.merge import merged
from curtsy.grounding.near_copies import find_quote
from curtsy.grounding.schema import Leaf, Schema
from curtsy.grounding.sentences import sentence_around
from curtsy.grounding.value_rules import Passage, Ruling, is_contact, is_distinctive, support_of

#: a record with a smaller share of grounded values has low confidence
THRESHOLD = 0.6
#: a record from a source of fewer words has low confidence
THIN_WORDS = 100
#: note of values that a language model does not confirm
DISPUTED = "disputed"
#: a longer quote is not a quote but a page, unless the value itself is long
_MAX_QUOTE = 500
#: characters before and after an e-mail address or phone number that belong to its passage
_REACH = 40
#: these write `n/a` if they found nothing; on a page, NA may mean Namibia
_WRITERS = (Rung.LLM, Rung.FUNCTION)
_GROUNDED = (Verdict.SUPPORTED, Verdict.DERIVED, Verdict.JUDGED)


@dataclass(frozen=True, slots=True)
class _Place:
    """A passage and the span of the source that is its evidence."""

    passage: Passage
    start: int
    end: int
    #: the markup names the field
    marked: bool = False


def is_grounded(field: Field) -> bool:
    """Return whether it has evidence, or comes from a person."""
    return field.verdict in _GROUNDED


def is_published(field: Field, leaf: Leaf) -> bool:
    """Return whether it may be published: judgments only if the schema allows them, or a person made them."""
    if field.verdict is Verdict.JUDGED:
        return leaf.allow_judged or field.rung is Rung.PERSON
    return field.verdict is not Verdict.UNSUPPORTED


# One claim


def judge(claim: Claim, leaf: Leaf, *, prompt_texts: Sequence[str] = ()) -> Field:
    """Return the claim with its verdict. `prompt_texts` are the model's prompt: repeating them is not evidence."""
    by_model = claim.rung in _WRITERS
    value, problem = value_types.typed(claim.value, leaf, by_model=by_model)
    if problem:
        return _withheld(claim, claim.value, problem)
    echo = value_types.echo(value, leaf, prompt_texts)
    if echo is value_types.Echo.NAME and claim.rung is not Rung.PERSON:
        return _withheld(claim, value, "echo")
    suspect = echo is value_types.Echo.PROMPT and claim.rung is Rung.LLM
    places, problem = _places(claim, value)
    if claim.against and places:
        return replace(_field(claim, value, Ruling(None, claim.against), places[0]), verdict=Verdict.UNSUPPORTED)
    for place in [*places, *_marked(claim, value, leaf, places)]:
        related = place.marked or _relates(claim, value, leaf, place)
        labelled = related or (related is None and _is_named(claim, value, leaf, place))
        quoted_for = leaf if _is_quoted(claim) else None
        passage = replace(place.passage, labelled=bool(labelled), quoted_for=quoted_for)
        ruling = support_of(value, leaf, passage, suspect=suspect)
        if ruling.verdict is not None and related is False:
            ruling = Ruling(None, "unrelated")
        elif ruling.verdict is not None and (why := _why_not_own(claim, leaf, place)):
            ruling = Ruling(None, why)
        if ruling.verdict is not None:
            return _field(claim, value, ruling, place)
        problem = problem or ruling.note
    if claim.quote and not suspect and (found := _by_itself(claim, value, leaf)):
        return found
    if claim.rung is Rung.PERSON:
        return Field(path=claim.path, value=value, rung=claim.rung, verdict=Verdict.JUDGED, note="person")
    return _withheld(claim, value, problem or "not_found")


def _why_not_own(claim: Claim, leaf: Leaf, place: _Place) -> str:
    """A model can quote a part of a sentence: the whole of it shows whose deed it states."""
    if not leaf.own or claim.rung is not Rung.LLM:
        return ""
    text = claim.source.text
    if claim.source.is_foreign(place.start, place.end):
        return "other_subject"
    start, end = sentence_around(text, place.start, place.end)
    return attribution.why_not_own(text[start:end], attribution.names_in(text[start:end], claim.source.url))


def _is_quoted(claim: Claim) -> bool:
    """Return whether a model quotes the text of a page or document."""
    return claim.rung is Rung.LLM and claim.source.kind is SourceKind.TEXT


def _relates(claim: Claim, value: Any, leaf: Leaf, place: _Place) -> bool | None:
    """A model can quote any line of the page: its quote must have something to do with the field. None: unknown."""
    if not _is_quoted(claim) or claim.source.context is None:
        return None
    return relation.relates(leaf, value, claim.source, place.start, place.end)


def _is_named(claim: Claim, value: Any, leaf: Leaf, place: _Place) -> bool:
    """Return whether a model's quote from a text without context has words of the field."""
    if not _is_quoted(claim):
        return False
    return relation.is_named_by(leaf, value, claim.source.text[place.start : place.end])


def _places(claim: Claim, value: Any) -> tuple[list[_Place], str]:
    """Return the places that the claim refers to, or why it has no place."""
    source = claim.source
    if source.kind is SourceKind.STRUCTURED and source.locator:
        if _is_copyright_key(source.locator):
            return [], "copyright_line"
        span = json_pointer.find(source.text, source.locator)
        if span is not None:
            return [_at_pointer(source.text, span)], ""
    if claim.span is not None:
        start, end = claim.span
        return [_Place(_within(source, start, end), start, end)], ""
    if claim.quote is not None and claim.quote.strip():
        return _quoted(claim, value)
    if source.kind is SourceKind.ATTRIBUTE:
        end = len(source.text)
        if not end:
            return [], "not_found"  # an empty attribute has no bytes that could be quoted
        return [_Place(Passage(text=source.text, start=0, end=end, named=True), 0, end)], ""
    if claim.rung is Rung.LLM and not (isinstance(value, str) and is_distinctive(value)):
        return [], "no_quote"
    return list(_located(claim, value)), ""


def _within(source: Source, start: int, end: int) -> Passage:
    """The span of an element. If the next element follows without a blank, the words end where the element ends."""
    text = source.text
    if any(0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum() for at in (start, end)):
        text, start, end = text[start:end], 0, end - start
    return Passage(text=text, start=start, end=end, named=True, language=source.language)


def _marked(claim: Claim, value: Any, leaf: Leaf, places: Sequence[_Place]) -> Iterator[_Place]:
    """Yield the elements within a model's quote that are the value, and whose markup names the field."""
    source = claim.source
    if not _is_quoted(claim) or not isinstance(value, str):
        return
    for place in places:
        for start, end, words in source.marked:
            said = source.text[start:end]
            if place.start <= start and end <= place.end and said == value and relation.names(leaf, words):
                yield _Place(Passage(text=said, start=0, end=len(said), named=True), start, end, marked=True)


def _at_pointer(text: str, span: json_pointer.ValueSpan) -> _Place:
    if isinstance(span.value, str):
        passage = Passage(text=span.value, start=0, end=len(span.value), named=True)
    else:
        raw = text[span.start : span.end]
        passage = Passage(text=raw, start=0, end=len(raw), named=True)
    return _Place(passage, span.start, span.end)


def _is_copyright_key(locator: str) -> bool:
    return "copyright" in locator.rpartition("/")[2].lower()


def _quoted(claim: Claim, value: Any) -> tuple[list[_Place], str]:
    quote, text = claim.quote or "", claim.source.text
    kind = claim.source.kind
    # The source of a structured claim is the JSON document, or only the text at the pointer: then that is the quote.
    named = kind is SourceKind.ATTRIBUTE or (
        kind is SourceKind.STRUCTURED and bool(claim.source.locator) and quote == text
    )
    if not named and len(quote) > max(_MAX_QUOTE, 2 * len(value) if isinstance(value, str) else 0):
        return [], "quote_too_long"
    folded = fold(text)
    spans = [(0, len(text))] if quote == text else [folded.span(*found) for found in find_quote(folded, quote)]
    language = claim.source.language
    places = [
        _Place(Passage(text=text, start=start, end=end, named=named, language=language), start, end)
        for start, end in spans
    ]
    if named and (decoded := html.unescape(text)) != text:
        # The value was decoded, so its text is too; the evidence is what the page has.
        places.append(_Place(Passage(text=decoded, start=0, end=len(decoded), named=True), 0, len(text)))
    return places, "" if places else "quote_not_found"


def _located(claim: Claim, value: Any) -> Iterator[_Place]:
    """Yield the places of the value itself; for an e-mail address or phone number, with the text around it."""
    text = claim.source.text
    folded = fold(text)
    reach = _REACH if isinstance(value, str) and is_contact(value) else 0
    for wanted in needles(value) if isinstance(value, str) else [str(value)]:
        for start, end in occurrences(folded.text, wanted):
            first, last = folded.span(start, end)
            passage = Passage(text=text, start=max(0, first - reach), end=min(len(text), last + reach))
            yield _Place(passage, first, last)


def _by_itself(claim: Claim, value: Any, leaf: Leaf) -> Field | None:
    """A distinctive text needs no quote: its own place is the evidence."""
    if leaf.type != "string" or not is_distinctive(value):
        return None
    for place in _located(claim, value):
        ruling = support_of(value, leaf, place.passage)
        refused = _relates(claim, value, leaf, place) is False or _why_not_own(claim, leaf, place)
        if ruling.verdict is not None and not refused:
            return _field(claim, value, ruling, place, claimed_quote=claim.quote)
    return None


def _field(claim: Claim, value: Any, ruling: Ruling, place: _Place, claimed_quote: str | None = None) -> Field:
    evidence = _evidence(claim.source, value, place.start, place.end)
    return Field(
        path=claim.path, value=value, rung=claim.rung, verdict=ruling.verdict or Verdict.UNSUPPORTED,
        evidence=(evidence,), note=_note(claim, ruling), claimed_quote=claimed_quote,
    )  # fmt: skip


def _evidence(source: Source, value: Any, start: int, end: int) -> Evidence:
    layout = source.layout
    return Evidence(
        page=source.page, url=source.url, source=source.kind, locator=source.locator, sha256=source.sha256,
        start=start, end=end, quote=source.text[start:end], visibility=layout.visibility_at(start, end),
        labels=layout.labels_at(*_narrowed(source.text, value, start, end)), part=layout.part_at(start),
        boxes=layout.boxes_at(start, end), ocr=layout.recognized,
    )  # fmt: skip


def _narrowed(text: str, value: Any, start: int, end: int) -> tuple[int, int]:
    """Return where a quote says the value: of a quoted row, only the cell with the value has the labels meant."""
    forms = (value,) if isinstance(value, str) else (str(value), f"{value:,}") if isinstance(value, int) else ()
    for form in forms:
        if form and (at := text.find(form, start, end)) >= 0:
            return at, at + len(form)
    return start, end


def _note(claim: Claim, ruling: Ruling) -> str:
    repaired = f"repaired: {', '.join(claim.repaired)}" if claim.repaired else ""
    return "; ".join(one for one in (ruling.note, repaired) if one)


def _withheld(claim: Claim, value: Any, note: str) -> Field:
    return Field(
        path=claim.path, value=value, rung=claim.rung, verdict=Verdict.UNSUPPORTED, note=note, claimed_quote=claim.quote
    )


# A record


def settle(schema: Schema, claims: Sequence[Claim], prompt_texts: Sequence[str] = ()) -> list[Field]:
    """Return the fields of a record. The first grounded claim of a leaf wins; others with the same value add evidence.
    Withheld values stay where nothing is grounded, and as items of lists after the grounded ones."""
    known = [*prompt_texts, *(leaf.description for leaf in schema.leaves if leaf.description)]
    judged: list[JudgedClaim] = []
    for claim in claims:
        try:
            leaf = schema.leaf_for(claim.path)
        except KeyError:
            continue
        says_nothing = value_types.is_nothing if claim.rung in _WRITERS else value_types.is_blank
        if not says_nothing(claim.value):
            judged.append(JudgedClaim(claim, judge(claim, leaf, prompt_texts=known)))
    return merged(schema, judged)


def confidence(
    schema: Schema, fields: Sequence[Field], words: int, *, threshold: float = THRESHOLD, thin_words: int = THIN_WORDS
) -> Confidence:
    """Return how reliable the record is; `words` is the length of its source text."""
    grounded: dict[str, bool] = {}
    for field in fields:
        if field.note in attribution.AGAINST and field.evidence:
            continue  # no value that was searched for, but what the organization says against itself
        grounded[field.path] = grounded.get(field.path, False) or is_grounded(field)
    share = sum(grounded.values()) / len(grounded) if grounded else 0.0
    reasons = []
    if words < thin_words:
        reasons.append("thin")
    if not any(grounded.values()):
        reasons.append("empty")
    elif share < threshold:
        reasons.append("unsupported")
    if any(field.note == CONTRADICTED for field in fields):
        reasons.append(CONTRADICTED)
    if any(field.note == DISPUTED for field in fields):
        reasons.append(DISPUTED)
    if any(is_grounded(field) and not is_published(field, schema.leaf_for(field.path)) for field in fields):
        reasons.append("judged")
    low = any(reason != CONTRADICTED for reason in reasons)  # contradicted values are withheld, the others published
    return Confidence(share=share, words=words, low=low, reasons=tuple(reasons))


def assemble(schema: Schema, fields: Sequence[Field]) -> dict[str, Any]:
    """Return the record's data; withheld values are absent, and lists have no gaps."""
    tree: dict[str, Any] = {}
    is_list: dict[tuple[str, ...], bool] = {}
    for field in fields:
        leaf = schema.leaf_for(field.path)
        if not is_published(field, leaf):
            continue
        parts, wanted = field.path.split("/")[1:], leaf.path.split("/")[1:]
        node = tree
        for at, part in enumerate(parts[:-1]):
            node = node.setdefault(part, {})
            is_list[tuple(parts[: at + 1])] = wanted[at + 1] == "*"
        node.setdefault(parts[-1], field.value)
    made: dict[str, Any] = _built(tree, is_list, ())
    return made


def _built(node: Any, is_list: dict[tuple[str, ...], bool], path: tuple[str, ...]) -> Any:
    """Convert numbered members to lists, and unescape names."""
    if not isinstance(node, dict):
        return node
    if is_list.get(path):
        return [_built(node[number], is_list, (*path, number)) for number in sorted(node, key=int)]
    return {json_pointer.unescaped(name): _built(inner, is_list, (*path, name)) for name, inner in node.items()}
