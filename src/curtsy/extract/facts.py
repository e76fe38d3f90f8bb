"""Labeled facts of the product, event or job that a page is about: `SKU: SB-6`, `Closing date | 28 March 2025`.

claims           the values of cells, definitions and lines with a label, if all places of the page agree
is_of_others     whether a place of the text is about another thing

Parts about other things do not count: related products, other openings, past dates.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from curtsy.core.claims import Claim, Rung
from curtsy.extract.cells import labelled, labelled_lines
from curtsy.extract.sources import PageSources
from curtsy.grounding.currencies import has_money
from curtsy.grounding.dates import dates, settled
from curtsy.grounding.schema import Leaf, Schema

_LABELS: dict[str, str] = {
    name: "|".join(re.escape(one.strip()) for one in sorted(text.replace("\n", "").split("|"), key=len, reverse=True))
    for name, text in tomllib.loads((Path(__file__).parent / "fact_labels.toml").read_text("utf-8")).items()
}
#: characters of a label's value in which its date begins, and of a name
_MAX_BEFORE_DATE, _MAX_NAME, _MAX_WORDS = 40, 80, 10
#: behind an amount: ` USD`
_MAX_SIGN = 4
#: values of a form that other lines do not have
_CERTAIN = frozenset(("sku", "start", "end", "posted", "deadline"))
_CODE = re.compile(r"(?:#\s?)?(?P<code>[^\W_][\w./#+-]{2,38}|\d{2,6}(?: \d{2,6}){1,5})(?=$|[\s,;)|•·])")
_NAME_END = re.compile(r"\s?[|•·\n\t｜]|\s{2,}|;|\s[–—-]\s|\.$|\.\s")
_NO_NAME = re.compile(r"https?:|www\.|@|[:：!?]|^\W|^(?:n/?a|none|unknown|various|-+)$", re.IGNORECASE)


class Fact(NamedTuple):
    """A value and its place in the text."""

    value: str
    start: int
    end: int


_Reader = Callable[[PageSources, int, int], Fact | None]


def claims(schema: Schema, page: PageSources, missing: Iterable[Leaf]) -> Iterator[Claim]:
    # The home page of a shop is about no one product.
    if page.article is None or ("Product" in schema.types and urlsplit(page.url).path in ("", "/")):
        return
    for leaf in missing:
        for of_type, path, labels, read in _FACTS:
            if of_type in schema.types and path == leaf.path and (found := _agreed(page, labels, read)):
                span, quote = (found.start, found.end), page.text.text[found.start : found.end]
                yield Claim(
                    path=leaf.path, value=found.value, rung=Rung.SELECTOR, source=page.text, quote=quote, span=span
                )


def _agreed(page: PageSources, labels: str, read: _Reader) -> Fact | None:
    """The only value; None if places with such a label have different ones."""
    found = [one for start, end in _places(page, labels) if (one := read(page, start, end)) is not None]
    return found[0] if len({one.value.casefold() for one in found}) == 1 else None


def _places(page: PageSources, labels: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of values with such a label."""
    # RE2 runs it: its \W has the letters of other scripts
    whole = rf"(?i)^[^\pL\pN]{{0,3}}(?:{_LABELS[labels]})\s?[.:：]?$"
    cells = [(one.start, one.end) for one in labelled(page.text, whole)]
    lines = [(one.start, one.end) for one in labelled_lines(page.text, whole)]
    if labels not in _CERTAIN:
        lines = [one for one in lines if _has_colon(page.text.text, one[0])]
    yield from (one for one in cells + lines if not is_of_others(page, one[0]))
    if labels in ("sku", "brand"):
        for found in _inline(labels).finditer(page.text.text):
            if not is_of_others(page, found.start()):
                yield found.span("rest")


def _has_colon(text: str, start: int) -> bool:
    """Whether a colon is between label and value. In menus, any line may follow `Company`."""
    line = text.rfind("\n", 0, start) + 1
    before = text[line:start] if text[line:start].strip() else text[:line]
    return before.rstrip()[-1:] in (":", "：")


@lru_cache
def _inline(labels: str) -> re.Pattern[str]:
    """Within a line: `SKU: SB-6 Category: Chisels`, `with a blouse piece. Brand: Vaishali`, `Art.nr SB-6`."""
    bare = r"\s{1,2}(?=[^\s]{3,40}$)" if labels == "sku" else "(?!)"
    return re.compile(
        rf"(?:^|(?<=[.|•·;,)（(] )|(?<=\s))(?:{_LABELS[labels]})(?:\s?[:：#]\s{{0,2}}|{bare})(?P<rest>[^\n]{{2,80}})",
        re.IGNORECASE | re.MULTILINE,
    )


def is_of_others(page: PageSources, start: int) -> bool:
    assert page.article is not None
    line = page.text.text.rfind("\n", 0, start) + 1
    return page.article.is_elsewhere(start, in_boxes=True) or page.article.is_line_beside(line)


# Values


def _code(page: PageSources, start: int, end: int) -> Fact | None:
    found = _CODE.match(page.text.text, start, end)
    if found is None or not any(map(str.isdigit, found["code"])) or any(dates(found[0])):
        return None
    if has_money(page.text.text[start : found.end() + _MAX_SIGN].partition("\n")[0]):
        return None
    return Fact(found["code"], *found.span("code"))


def _name(page: PageSources, start: int, end: int) -> Fact | None:
    text = page.text.text
    cut = _NAME_END.search(text, start, end)
    stop = cut.start() if cut else end
    name = text[start:stop].strip()
    if not 2 <= len(name) <= _MAX_NAME or len(name.split()) > _MAX_WORDS or _NO_NAME.search(name) or any(dates(name)):
        return None
    return Fact(" ".join(name.split()), start, stop) if any(map(str.isalpha, name)) else None


def _first_day(page: PageSources, start: int, end: int) -> Fact | None:
    return next(_days(page, start, end), None)


def _last_day(page: PageSources, start: int, end: int) -> Fact | None:
    found = list(_days(page, start, end))
    return found[-1] if found else None


def _end_of_span(page: PageSources, start: int, end: int) -> Fact | None:
    found = list(_days(page, start, end))
    return found[1] if len(found) == 2 and found[0].value < found[1].value else None


def _days(page: PageSources, start: int, end: int) -> Iterator[Fact]:
    """Yield the days at the beginning of a value."""
    text = page.text.text[start:end]
    for number, one in enumerate(sorted(dates(text), key=lambda one: one.start)):
        if not number and one.start > _MAX_BEFORE_DATE:
            return
        day = settled(replace(one, start=one.start + start, end=one.end + start), page.text.text, page.text.language)
        if day is not None and day.day is not None:
            yield Fact(day.iso, start, end)


#: type, leaf, labels, how to read the value; in the order in which they are tried
_FACTS: tuple[tuple[str, str, str, _Reader], ...] = (
    ("Product", "/sku", "sku", _code),
    ("Product", "/brand", "brand", _name),
    ("Event", "/start", "start", _first_day),
    ("Event", "/end", "end", _last_day),
    ("Event", "/end", "start", _end_of_span),
    ("Event", "/organizer", "organizer", _name),
    ("Event", "/location", "venue", _name),
    ("JobPosting", "/posted", "posted", _first_day),
    ("JobPosting", "/deadline", "deadline", _last_day),
    ("JobPosting", "/employer", "employer", _name),
    ("JobPosting", "/location", "workplace", _name),
    ("JobPosting", "/employment_type", "employment_type", _name),
)
