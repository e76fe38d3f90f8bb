"""Facts of events and jobs without a label of their own: the day of an event in a line below its heading, the last day
for applications in a sentence, and who is hiring.

claims    what the page states about its own event or job; nothing if two places differ
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from curtsy.core.claims import Claim, Rung
from curtsy.extract.article_dates import is_quiet
from curtsy.extract.article_marks import Part
from curtsy.extract.article_page import ArticlePage
from curtsy.extract.article_words import any_of
from curtsy.extract.facts import Fact, is_of_others
from curtsy.extract.sources import PageSources
from curtsy.grounding.dates import Stated, dates, settled
from curtsy.grounding.schema import Leaf, Schema

_EVENT_MARKS = re.compile(
    r"(?:^|[\s_\-])(?:dates|when|event-?(?:date|time|day|start)\w{0,6}|start-?(?:date|time)|date-?time|termin|"
    r"veranstaltungstermin|fecha-evento|data-evento|tribe-events?-schedule)(?:$|[\s_\-])",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?<!\d)(?:[01]?\d|2[0-4])(?:[:.h][0-5]\d|(?::[0-5]\d)? ?(?:[ap]\.?m\b|uhr\b|h\b|hrs?\b|o'clock))"
    r"|[午前後]{2}|오[전후]|\d{1,2} ?[時时]",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(
    rf"\b{any_of('weekdays')}\b|[（(][月火水木金土日](?:[・･]祝)?[）)]|[月火水木金土日]曜|(?:周|星期)[一二三四五六日天]",
    re.IGNORECASE,
)
_NOT_OF_EVENT = re.compile(
    rf"\b(?:{any_of('published')}|{any_of('updated')}|{any_of('not_of_event')})\b"
    rf"|{any_of('published_unspaced')}|{any_of('updated_unspaced')}",
    re.IGNORECASE,
)
_DEADLINE = re.compile(
    rf"(?:^|(?<=[\s(（]))(?:{any_of('deadline_phrases')})\W{{0,3}}"
    r"(?:(?:on|the|is|den|dem|le|el|il|der|zum)\s){0,2}",
    re.IGNORECASE,
)
_NAME = (
    r"(?P<name>[A-ZÀ-ÖØ-Þ][\w&'’.-]{1,30}(?: (?:of|and|&|und|de|la|du|der|di|van|the|[A-ZÀ-ÖØ-Þ][\w&'’.-]{0,30})){0,5})"
)
_SEEKS = re.compile(rf"^(?:(?:We at|Die|Der|Das|La|Le|El) )?{_NAME},? {any_of('seeks')}\b", re.MULTILINE)
_FOR_OTHERS = re.compile(
    r"behalf|client|Auftrag|Kunde|pour le compte|cliente?\b|uppdrag|opdracht|zlecenie|klient", re.IGNORECASE
)
_AT = re.compile(
    rf"[,;·|] (?i:at|im|in der|in den|au|à la|en el|en la|presso|nel|nella|in de|in het) (?:the )?{_NAME}\.?$"
)
_MAX_LINE, _MAX_SENTENCE = 160, 400


def claims(schema: Schema, page: PageSources, missing: Iterable[Leaf], known: Iterable[str]) -> Iterator[Claim]:
    """`known` has the leaves that the page states. Without one, a date near the heading may be that of an article."""
    shown = page.article
    if shown is None or shown.heading is None:
        return
    for leaf in missing:
        found: list[Fact] = []
        if "Event" in schema.types and leaf.path in ("/start", "/end") and {"/location", "/organizer"} & set(known):
            found = list(_of_event(page, shown, 0 if leaf.path == "/start" else 1))
        elif "Event" in schema.types and leaf.path == "/location" and "/start" in known:
            found = list(_beside_day(page, shown))
        elif "JobPosting" in schema.types and leaf.path == "/deadline":
            found = _deadlines(page, shown)
        elif "JobPosting" in schema.types and leaf.path == "/employer":
            found = list(_seeking(page))
        if len({one.value for one in found}) == 1:
            yield _claim(page, leaf, found[0])


def _claim(page: PageSources, leaf: Leaf, found: Fact) -> Claim:
    span = (found.start, found.end)
    quote = page.text.text[found.start : found.end]
    return Claim(path=leaf.path, value=found.value, rung=Rung.SELECTOR, source=page.text, quote=quote, span=span)


# Events


def _of_event(page: PageSources, shown: ArticlePage, number: int) -> Iterator[Fact]:
    """Yield the first or second day of short lines below the heading that are about an event."""
    assert shown.heading is not None
    for part, role in shown.dated():
        stated = sorted(dates(part.text), key=lambda one: one.start)
        is_below = part.start >= shown.heading[1] and not is_of_others(page, part.start)
        if role != "dated" or not is_below or not stated or len(part.text) > _MAX_LINE:
            continue
        beside = f"{part.text[: stated[0].start]} {part.text[stated[-1].end :]}"
        if _NOT_OF_EVENT.search(beside) or not _is_quiet(part.text, stated) or not _is_of_event(part, stated):
            continue
        if number < len(stated) and (number == 0 or _is_span(stated)):
            whole = replace(
                stated[number], start=stated[number].start + part.start, end=stated[number].end + part.start
            )
            day = settled(whole, page.text.text, page.text.language)
            if day is not None and day.day is not None:
                yield Fact(day.iso, part.start, part.end)


def _is_quiet(text: str, stated: Sequence[Stated]) -> bool:
    """Whether a line has few words beside its days, times and days of the week."""
    for one in (_CLOCK, _WEEKDAY):
        text = one.sub(lambda found: " " * len(found[0]), text)
    return is_quiet(text, stated)


def _is_of_event(part: Part, stated: Sequence[Stated]) -> bool:
    """Whether a line has a span of days, a time of day, a day of the week, or the class of a date of an event."""
    said = any(one.search(part.text) for one in (_CLOCK, _WEEKDAY))
    return said or _is_span(stated) or _EVENT_MARKS.search(part.marks) is not None


def _is_span(stated: Sequence[Stated]) -> bool:
    return len(stated) == 2 and stated[1].start - stated[0].end <= 40


def _beside_day(page: PageSources, shown: ArticlePage) -> Iterator[Fact]:
    """`Saturday 8 March 2025, 1 pm to 5 pm, at Saint Brannoc Hall`"""
    for start, end in shown.lines:
        text = page.text.text[start:end]
        at = _AT.search(text)
        if at is not None and start >= (shown.heading or (0, 0))[1] and len(list(dates(text))) == 1:
            yield Fact(at["name"], start + at.start("name"), start + at.end("name"))


# Jobs


def _deadlines(page: PageSources, shown: ArticlePage) -> list[Fact]:
    """The days behind `apply by`; if several differ, those before the next heading."""
    text, found = page.text.text, []
    for phrase in _DEADLINE.finditer(text):
        if is_of_others(page, phrase.start()):
            continue
        near = text[phrase.end() : phrase.end() + 40].partition("\n")[0]
        one = next(iter(sorted(dates(near), key=lambda one: one.start)), None)
        if one is None or len(near[: one.start].split()) > 1:
            continue
        end = phrase.end() + one.end
        day = settled(replace(one, start=phrase.end() + one.start, end=end), text, page.text.language)
        if day is not None and day.day is not None:
            found.append(Fact(day.iso, phrase.start(), end))
    if len({one.value for one in found}) > 1:
        stop = shown.next_heading
        return [one for one in found if (shown.heading or (0, 0))[1] <= one.start < stop]
    return found


def _seeking(page: PageSources) -> Iterator[Fact]:
    """`Briarwood Cheese is looking for an affineur`, but not on behalf of others."""
    text = page.text.text
    for found in _SEEKS.finditer(text):
        around = text[found.start() : found.start() + _MAX_SENTENCE].partition("\n")[0]
        if " " in found["name"] and not _FOR_OTHERS.search(around) and not is_of_others(page, found.start()):
            yield Fact(found["name"].rstrip(".,"), *found.span("name"))
