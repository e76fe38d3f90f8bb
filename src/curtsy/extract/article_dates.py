"""Days of publication and of updates that an article's page shows, outside of its structured data.

claims     the best date for a leaf: of marked elements and lines around the heading, then with a label anywhere
of_span    a claim with its exact span of the visible text
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.extract.article_marks import Part
from curtsy.extract.article_page import ArticlePage
from curtsy.extract.article_words import any_of
from curtsy.extract.sources import PageSources
from curtsy.grounding.dates import Day, Stated, dates, settled, value_of
from curtsy.grounding.folded_text import is_copyright
from curtsy.grounding.schema import Leaf

_PUBLISHED, _UPDATED = (
    re.compile(rf"\b{any_of(name)}\b|{any_of(f'{name}_unspaced')}", re.IGNORECASE) for name in ("published", "updated")
)
#: right before a date that says something else: `Deadline: 5 May 2024`, `Valid until 5 May 2024`
_OTHER_DATE = re.compile(
    rf"(?:(?:^|\W){any_of('other_dates')}|{any_of('other_dates_unspaced')})\W{{0,4}}(?:(?:on|am|le|el|il|op|den|is)\W{{1,2}})?$",
    re.IGNORECASE,
)
#: words next to the date of a line that is nothing but a date
_MAX_OTHERS = 8
#: the same far from a label: a time of day, `Posted`
_MAX_BESIDE = 4
_MAX_BEFORE = 60
#: a line that is a sentence: `The bridge opens on 9 May 2024.`
_SENTENCE = re.compile(r"[.!?。！？।]['\"”’»」)]?\s*$")
_LEAST_WORDS = 3
#: letters that count as a word, in scripts without blanks
_LETTERS_OF_WORD = 2
#: between two days of one span: `5 May 2024 – 7 May 2024`
_SPAN = re.compile(
    r"\W{0,3}(?:[-–—~〜～から]|to|till|until|through|bis|au|al|a|ao|até|t/m|tot|til|till|до|по|do)\W{0,3}$",
    re.IGNORECASE,
)
#: a label that no list has: `Fira: 5 May 2024`
_OTHER_LABEL = re.compile(r"[^\W\d_]\s?[:：]\s{0,3}$")
_UNSPACED = re.compile("[\u0e01-\u0e2e\u3040-\u30ff\u3400-\u9fff]")
_BAR = re.compile(r"[|•·｜]")
_URL_DATE = re.compile(r"/((?:19|20)\d\d)[/-](0?[1-9]|1[0-2])[/-](0?[1-9]|[12]\d|3[01])(?=[/_.-]|$)")


def of_span(page: PageSources, path: str, value: Any, start: int, end: int) -> Claim:
    """The span is exact: text of the next element may follow without a blank, so that the quote alone is not found."""
    text, span = page.text.text, (start, end)
    return Claim(path=path, value=value, rung=Rung.SELECTOR, source=page.text, quote=text[start:end], span=span)


def claims(
    page: PageSources, shown: ArticlePage, leaf: Leaf, kind: str, *, only_labelled: bool = False
) -> Iterator[Claim]:
    """The first date whose role fits; a date without a role is the day of publication.

    In microformats, so is the day in the class `updated`, if no other is stated; a text that says `updated` is not.
    """
    unlabelled: list[tuple[Claim, Part]] = []
    updated: Claim | None = None
    for part, role in shown.dated():
        for claim, labelled in _of_part(page, leaf, part, role):
            if labelled == kind:
                yield claim
                return
            if labelled == "dated":
                unlabelled.append((claim, part))
            elif role == "modified" and updated is None and _label(part.text, "") == "":
                updated = claim
    if only_labelled or kind != "published":
        return
    if unlabelled:
        yield min(unlabelled, key=lambda one: (_distance_above(shown, one[1]), _has_other_label(page, one[0])))[0]
        return
    if updated is not None:
        yield updated
        return
    for source in (_far, _beside_heading, _marked, _of_meta, _alone):
        if (found := source(page, shown, leaf)) is not None:
            yield found
            return
    if (found := _of_url(page, leaf)) is not None:
        yield found


def _distance_above(shown: ArticlePage, part: Part) -> int:
    """Above the heading, a date without a mark is often that of today or of the issue, more so far above."""
    if not shown.heading or part.end > shown.heading[0]:
        return 0
    if shown.lines and part.end < shown.lines[0][0]:
        return 2
    return int(part.tag != "time")


def _has_other_label(page: PageSources, claim: Claim) -> bool:
    """Whether words and a colon that are no label of the day of publication come before each of its dates."""
    start, end = claim.span or (0, 0)
    text = page.text.text[start:end]
    return all(_OTHER_LABEL.search(text[max(0, one.start - _MAX_BEFORE) : one.start]) for one in dates(text))


def _far(page: PageSources, shown: ArticlePage, leaf: Leaf) -> Claim | None:
    """The only date with a label, wherever it is: `Published: 5 May 2024` in a table or below the text."""
    found = {
        claim.value: claim
        for part in shown.labelled()
        for claim, labelled in itertools.islice(_of_part(page, leaf, part, "dated"), 1)
        if labelled != "modified"
    }
    return next(iter(found.values())) if len(found) == 1 else None


def _beside_heading(page: PageSources, shown: ArticlePage, leaf: Leaf) -> Claim | None:
    """The only date in lines right after the heading that are nothing but a date."""
    return _sole(page, leaf, shown.beside_heading())


def _marked(page: PageSources, shown: ArticlePage, leaf: Leaf) -> Claim | None:
    """The only day that the page marks as that of publication, wherever it is: `<footer><span class="post-date">`."""
    return _sole(page, leaf, shown.marked_days())


def _alone(page: PageSources, shown: ArticlePage, leaf: Leaf) -> Claim | None:
    """The only line of the page that is nothing but a date, if no heading shows where the article begins.

    A home page has that of today."""
    is_home = urlsplit(page.url).path in ("", "/")
    return None if shown.heading is not None or is_home else _sole(page, leaf, shown.short_lines())


def _sole(page: PageSources, leaf: Leaf, parts: Iterable[Part]) -> Claim | None:
    found = {
        claim.value: claim
        for part in parts
        for claim, labelled in _of_part(page, leaf, part, "dated", most=_MAX_BESIDE)
        if labelled != "modified"
    }
    return next(iter(found.values())) if len(found) == 1 else None


def _of_meta(page: PageSources, shown: ArticlePage, leaf: Leaf) -> Claim | None:
    days = [(text, day) for text in shown.stated_days() if (day := _day_of(text)) is not None]
    if len({day for _, day in days}) != 1:
        return None
    text, day = days[0]
    source = Source(SourceKind.ATTRIBUTE, page.page, page.url, text, "css:meta[itemprop=datePublished] @content")
    return Claim(path=leaf.path, value=day.iso, rung=Rung.SELECTOR, source=source, quote=text)


def _of_part(
    page: PageSources, leaf: Leaf, part: Part, role: str, *, most: int = _MAX_OTHERS
) -> Iterator[tuple[Claim, str]]:
    text, at = part.text, 0
    stated = list(dates(text))
    others = _others(text, stated) if part.tag == "line" and stated else 0
    if others > most:
        return
    in_sentence = others >= _LEAST_WORDS and _SENTENCE.search(text) is not None
    if is_copyright(page.text.text, part.start, part.end):
        return
    is_read = False
    pairs = itertools.pairwise(stated)
    spans = {day for pair in pairs if _is_span(text, *pair) for day in pair}
    for one in stated:
        before, at = text[at : one.start], one.end
        label, is_read = _label(before, role), is_read or len(one.days) == 1
        if label == "dated" and (in_sentence or one in spans or _OTHER_DATE.search(before[-_MAX_BEFORE:])):
            continue
        whole = replace(one, start=one.start + part.start, end=one.end + part.start)
        day = settled(whole, page.text.text, page.text.language)
        if day is not None and day.day is not None:
            yield of_span(page, leaf.path, day.iso, part.start, part.end), label
    if not is_read and part.stated and (day := _day_of(part.stated)) is not None:
        locator = "css:time @datetime" if part.tag == "time" else f"css:{part.tag} @content"
        source = Source(SourceKind.ATTRIBUTE, page.page, page.url, part.stated, locator)
        made = Claim(path=leaf.path, value=day.iso, rung=Rung.SELECTOR, source=source, quote=part.stated)
        yield made, _label(text, role)


def is_quiet(text: str, stated: Sequence[Stated]) -> bool:
    """Whether a line is little more than its dates, and no sentence."""
    others = _others(text, stated)
    return others <= _MAX_OTHERS and not (others >= _LEAST_WORDS and _SENTENCE.search(text))


def _is_span(text: str, one: Stated, other: Stated) -> bool:
    """Whether it is from one day to another, as of an event."""
    between = text[one.end : other.start]
    return not between or _SPAN.fullmatch(between) is not None


def _others(text: str, stated: Sequence[Stated]) -> int:
    """The number of words beside the dates, up to the next bar: `5 May 2024 at 8 AM | categories: Canals, Fog`."""
    for one in stated:
        text = text.replace(text[one.start : one.end], " " * (one.end - one.start))
    end = _BAR.search(text, stated[-1].end)
    start = max((bar.end() for bar in _BAR.finditer(text, 0, stated[0].start)), default=0)
    beside = text[start : end.start() if end else None]
    return len(beside.split()) + len(_UNSPACED.findall(beside)) // _LETTERS_OF_WORD


def _label(before: str, role: str) -> str:
    updated, published = _last(_UPDATED, before), _last(_PUBLISHED, before)
    if updated < 0 and published < 0:
        return role
    return "modified" if updated > published else "published"


def _last(pattern: re.Pattern[str], text: str) -> int:
    return max((found.start() for found in pattern.finditer(text)), default=-1)


def _day_of(text: str) -> Day | None:
    made = value_of(text.strip()) or value_of(text.strip()[:10])
    return made[0] if made is not None and made[0].day is not None else None


def _of_url(page: PageSources, leaf: Leaf) -> Claim | None:
    """The last resort: `/2024/03/05/` in the address."""
    found = _URL_DATE.search(urlsplit(page.url).path)
    day = value_of(f"{found[1]}-{int(found[2]):02d}-{int(found[3]):02d}") if found else None
    if day is None or found is None:
        return None
    source = Source(SourceKind.ATTRIBUTE, page.page, page.url, found[0].strip("/"), "url")
    return Claim(path=leaf.path, value=day[0].iso, rung=Rung.SELECTOR, source=source, quote=source.text)
