"""Scores: a rubric over the evidence of a record's published fields; reasons and quotes come from that evidence only.

Patterns are searched in quotes, never in unsupported values. What the organization says against
itself (failures, denials) lowers a criterion with `own`. A language model receives quotes, and its answer counts
only if it names one of them. A score contains the version of its rubric.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from typing import Any, NamedTuple, Protocol

from curtsy.core.claims import Evidence, Field, Verdict
from curtsy.core.errors import UsageError
from curtsy.grounding import attribution
from curtsy.grounding.folded_text import fold, plain
from curtsy.grounding.json_pointer import value_at
from curtsy.grounding.numbers import numbers
from curtsy.grounding.rubrics import Criterion, Function, Rubric, Scorer, built_in, compiled, load, text_of
from curtsy.grounding.vocabulary import NEGATIONS

__all__ = ["Function", "Rubric", "Scorer", "built_in", "has_figure", "load", "score", "text_of"]

#: quotes in the result of one criterion
_MAX_QUOTES = 10
#: matches of one pattern in one quote
_MAX_MATCHES = 20
_CLAUSE = re.compile(r"[.,;:!?()]")
_ONLY = ("only", "just", "merely", "simply", "nur", "seulement", "solo")
#: weight of a quote without a figure if the criterion expects figures
_WITHOUT_FIGURE = 0.5
#: minimum number of characters with which a model names a quote
_MIN_NAMED = 8
_YEARS = range(1900, 2101)


class Answer(Protocol):
    """A language model's answer to a question about quotes."""

    @property
    def score(self) -> float:
        """0: no, 1: yes."""

    @property
    def quote(self) -> str | None:
        """The words of the quotes on which it is based."""


class Ask(Protocol):
    def __call__(self, question: str, quotes: Sequence[str], /) -> Answer: ...


class _Quote(NamedTuple):
    #: of the field
    path: str
    evidence: Evidence

    @property
    def text(self) -> str:
        return self.evidence.quote

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self.evidence, name) for name in ("quote", "url", "start", "end")}


def score(
    rubric: Scorer, schema_name: str, data: Mapping[str, Any], fields: Sequence[Field], ask: Ask | None = None
) -> dict[str, Any]:
    """{"rubric", "version", "total", "groups", "criteria": [{"name", "score", "reason", "quotes"}]}; scores are 0 to
    100, and null if they need a model and no model is configured.
    """
    quotes = list(_published(data, fields))
    if isinstance(rubric, Function):
        return _by_function(rubric, schema_name, data, quotes)
    admitted = list(_admitted(fields))
    results = [_criterion(criterion, quotes, ask, admitted) for criterion in rubric.criteria]
    groups = {group: _mean(_weighted(rubric, results, group)) for group in rubric.groups}
    total = _mean((rubric.groups[group], value) for group, value in groups.items() if value is not None)
    return _result(rubric, _rounded(total), {group: _rounded(value) for group, value in groups.items()}, results)


def _published(data: Mapping[str, Any], fields: Sequence[Field]) -> Iterator[_Quote]:
    """Yield the evidence of the values in the record's data; equal words count once."""
    seen: set[tuple[str, str]] = set()
    for field in fields:
        if field.verdict is Verdict.UNSUPPORTED or value_at(data, field.path) != field.value:
            continue
        for evidence in field.evidence:
            once = (field.path, plain(evidence.quote).strip(" .,;:!?\"'"))
            if once not in seen:
                seen.add(once)
                yield _Quote(field.path, evidence)


def _admitted(fields: Sequence[Field]) -> Iterator[_Quote]:
    """Yield what the organization says against itself: failures and denials, which are no values of the record."""
    for field in fields:
        if field.verdict is Verdict.UNSUPPORTED and field.note in attribution.AGAINST:
            yield from (_Quote(field.path, evidence) for evidence in field.evidence)


def _criterion(
    criterion: Criterion, quotes: Sequence[_Quote], ask: Ask | None, admitted: Sequence[_Quote] = ()
) -> dict[str, Any]:
    seen: dict[str, _Quote] = {}
    against = {
        plain(quote.text): quote
        for quote in admitted
        if criterion.own and _is_selected(criterion.fields, quote.path) and _mentions(criterion, quote.text)
    }
    for quote in quotes:
        if not _is_selected(criterion.fields, quote.path):
            continue
        if criterion.own and _speaks_against(criterion, quote.text):
            against.setdefault(plain(quote.text), quote)
        elif not criterion.patterns or (_matched(criterion, quote.text) and _counts(criterion, quote)):
            seen.setdefault(plain(quote.text), quote)
    found = list(seen.values())
    if against and criterion.patterns and (criterion.question is None or ask is None):
        return _lowered(criterion, found, list(against.values()))
    if not found:
        return _made(criterion, 0.0, "no evidence", [])
    if criterion.question is not None and ask is not None:
        return _asked(criterion, found, ask)
    if not criterion.patterns:
        return _made(criterion, None, "not asked", [])
    return _counted(criterion, found)


def _counts(criterion: Criterion, quote: _Quote) -> bool:
    """An own deed: not of others, not planned, not hypothetical, not ended. Denials are handled by the match."""
    names = attribution.names_in(quote.text, quote.evidence.url)
    return not criterion.own or attribution.why_not_own(quote.text, names) in ("", "negated")


def _speaks_against(criterion: Criterion, text: str) -> bool:
    """Return whether it states a failure, or denies what the criterion looks for."""
    if not _mentions(criterion, text):
        return False
    return attribution.is_failure(text) or (not _matched(criterion, text) and attribution.lowers(text))


def _mentions(criterion: Criterion, text: str) -> bool:
    return any(compiled(pattern).search(text) for pattern in criterion.patterns)


def _lowered(criterion: Criterion, found: Sequence[_Quote], against: Sequence[_Quote]) -> dict[str, Any]:
    """Each denial or failure subtracts as much as a quote with a figure adds."""
    good = _counted(criterion, found) if found else _made(criterion, 0.0, "no evidence", [])
    share = max(0.0, (good["score"] or 0.0) / 100 - len(against) / criterion.enough)
    said = f"{len(against)} {'denial or failure' if len(against) == 1 else 'denials or failures'}"
    return _made(criterion, share, f"{good['reason']}; {said}", [*against, *found])


def _is_selected(globs: Sequence[str], path: str) -> bool:
    wanted = [glob for glob in globs if not glob.startswith("!")]
    if any(fnmatchcase(path, glob[1:]) for glob in globs if glob.startswith("!")):
        return False
    return not wanted or any(fnmatchcase(path, glob) for glob in wanted)


def _matched(criterion: Criterion, quote: str) -> str:
    """Return the matching words; empty if nothing matches, it is negated, or an `against` pattern matches."""
    if any(compiled(pattern).search(quote) for pattern in criterion.against):
        return ""
    folded = fold(quote)
    for pattern in criterion.patterns:
        for found in islice(compiled(pattern).finditer(quote), _MAX_MATCHES):
            if not _is_negated(folded.text[: folded.place(found.start())]):
                return str(found.group()) or quote[:40]
    return ""


def _is_negated(before: str) -> bool:
    """Return whether a negation precedes the match in its clause."""
    words = [*_CLAUSE.split(before)[-1].split(), ""]
    return any(word in NEGATIONS and after not in _ONLY for word, after in pairwise(words))


def _counted(criterion: Criterion, quotes: Sequence[_Quote]) -> dict[str, Any]:
    with_figure = sum(has_figure(quote.text) for quote in quotes) if criterion.figures else len(quotes)
    points = with_figure + (len(quotes) - with_figure) * _WITHOUT_FIGURE
    words = dict.fromkeys(plain(_matched(criterion, quote.text)) for quote in quotes)
    said = ", ".join(f'"{word}"' for word in list(words)[:5])
    reason = f"{len(quotes)} {'quote' if len(quotes) == 1 else 'quotes'} with {said}"
    if criterion.figures:
        reason += f", {with_figure} with a figure"
    # Quotes with figures are shown first.
    shown = sorted(quotes, key=lambda quote: not has_figure(quote.text)) if criterion.figures else quotes
    return _made(criterion, min(1.0, points / criterion.enough), reason, shown)


def _asked(criterion: Criterion, quotes: Sequence[_Quote], ask: Ask) -> dict[str, Any]:
    answer = ask(criterion.question or "", [quote.text for quote in quotes])
    # A model's reasons are not evidence: only the quote that it names is kept, if it was given one.
    named = plain(answer.quote or "").strip(" .,;:!?\"'")
    kept = [quote for quote in quotes if len(named) >= _MIN_NAMED and named in plain(quote.text)][:1]
    if answer.score <= 0:
        return _made(criterion, 0.0, "a model finds that the quotes do not say so", kept)
    if not kept:
        return _made(criterion, 0.0, "a model's answer that rests on no evidence", [])
    return _made(criterion, min(float(answer.score), 1.0), "a model finds it in the quote", kept)


def has_figure(text: str) -> bool:
    """Return whether the text has a number that is not a year."""
    return any(number.literal is None or number.percent or number.literal not in _YEARS for number in numbers(text))


def _made(criterion: Criterion, share: float | None, reason: str, quotes: Sequence[_Quote]) -> dict[str, Any]:
    return {
        "name": criterion.name,
        "group": criterion.group,
        "weight": criterion.weight,
        "score": None if share is None else round(share * 100, 1),
        "reason": reason,
        "quotes": [quote.as_json() for quote in quotes[:_MAX_QUOTES]],
    }


def _weighted(rubric: Rubric, results: Sequence[dict[str, Any]], group: str) -> Iterator[tuple[float, float]]:
    for criterion, result in zip(rubric.criteria, results, strict=True):
        if criterion.group == group and result["score"] is not None:
            yield criterion.weight, result["score"]


def _mean(weighted: Iterable[tuple[float, float]]) -> float | None:
    pairs = list(weighted)
    weight = sum(one for one, _ in pairs)
    return sum(one * value for one, value in pairs) / weight if weight else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _result(scorer: Scorer, total: float | None, groups: Any, criteria: Any) -> dict[str, Any]:
    return {
        "rubric": scorer.name,
        "version": scorer.version,
        "total": total,
        "groups": groups,
        "criteria": criteria,
    }


def _by_function(
    scorer: Function, schema_name: str, data: Mapping[str, Any], quotes: Sequence[_Quote]
) -> dict[str, Any]:
    given = [{"path": quote.path, **quote.as_json()} for quote in quotes]
    try:
        made = scorer.call(schema=schema_name, data=data, quotes=given)
    except SystemExit as error:
        raise UsageError(f"the scorer {scorer.name} exits the process ({error})") from error
    if isinstance(made, int | float) and not isinstance(made, bool):
        return _result(scorer, _bounded(made), {}, [])
    if not isinstance(made, Mapping):
        raise UsageError(f"the scorer {scorer.name} returned {type(made).__name__} instead of a number or a result")
    known = {quote.text: quote.as_json() for quote in quotes}
    try:
        criteria = [_checked(one, known) for one in made.get("criteria", ())]
        groups = {str(group): _bounded(value) for group, value in (made.get("groups") or {}).items()}
        return _result(scorer, _bounded(made.get("total")), groups, criteria)
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"the scorer {scorer.name} returned an invalid result: {error}") from error


def _checked(criterion: Any, known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    said = [str(one.get("quote") if isinstance(one, Mapping) else one) for one in criterion.get("quotes", ())]
    return {
        "name": str(criterion.get("name", "")),
        "score": _bounded(criterion.get("score")),
        "reason": str(criterion.get("reason", "")),
        "quotes": [known[one] for one in said if one in known],
    }


def _bounded(value: Any) -> float | None:
    if value is None:
        return None
    if not math.isfinite(float(value)):
        raise UsageError(f"a score must be a number from 0 to 100, not {value}")
    return round(min(max(float(value), 0.0), 100.0), 1)
