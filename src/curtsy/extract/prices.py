"""The price that a product's page shows, and whether it agrees with its structured data."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.extract.article_marks import Part
from curtsy.extract.shown_price import Price, find, find_labelled
from curtsy.extract.sources import PageSources
from curtsy.extract.values import coerced
from curtsy.grounding.currencies import codes_of
from curtsy.grounding.numbers import numbers
from curtsy.grounding.schema import Leaf, Schema

_PRICE = re.compile(r"(?:^|[\s_\-])(?:product-?|current-?|sale-?|final-?|our-?)?price(?:$|[\s_\-])", re.IGNORECASE)
_OTHER = re.compile(
    r"(?:^|[\s_\-])(?:old|was|list|regular|original|strike|before|compare|unit|msrp|rrp|shipping|from|per)(?:$|[\s_\-])",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^[^\W\d_]{1,12}\s?:\s?")


def claims(
    schema: Schema, page: PageSources, missing: Iterable[Leaf], compared: Collection[Leaf] = ()
) -> Iterator[Claim]:
    """Yield price and currency. Structured data states the leaves in `compared`: only the one price in elements that
    are marked as prices, or else in labeled lines, contradicts it."""
    wanted = {leaf.path: leaf for leaf in missing if leaf.path in ("/price", "/currency")}
    number = next((leaf for leaf in schema.leaves if leaf.path == "/price"), None)
    if not wanted or number is None or page.document is None or "Product" not in schema.types:
        return
    if "/price" in wanted and number not in compared and page.article is not None:
        if (found := find(page, number)) is not None:
            yield from _shown(page, found, wanted)
        return
    marked = _parts(page)
    yield from _marked(page, number, wanted, marked)
    if "/price" not in wanted or marked or page.article is None:
        return
    if (found := find_labelled(page, number)) is not None:
        yield from _shown(page, found, wanted)


def _shown(page: PageSources, found: Price, wanted: Collection[str]) -> Iterator[Claim]:
    quote, span = page.text.text[found.start : found.end], (found.start, found.end)
    yield Claim(path="/price", value=found.value, rung=Rung.SELECTOR, source=page.text, quote=quote, span=span)
    if "/currency" in wanted and len(found.codes) == 1:
        (code,) = found.codes
        yield Claim(path="/currency", value=code, rung=Rung.SELECTOR, source=page.text, quote=quote, span=span)


def _marked(page: PageSources, number: Leaf, wanted: Collection[str], parts: Iterable[Part]) -> Iterator[Claim]:
    """Nothing if the elements show different prices."""
    found = [(part, value) for part in parts if (value := _value(part, number))]
    if len({value for _, value in found}) != 1:
        return
    part, value = found[0]
    source = Source(SourceKind.ATTRIBUTE, page.page, page.url, part.text, "css:.price", language=page.text.language)
    if "/price" in wanted:
        yield Claim(path="/price", value=value, rung=Rung.SELECTOR, source=source, quote=part.text)
    one = next(iter(numbers(part.text)), None)
    codes = set() if one is None else codes_of(part.text, one.start, one.whole_end, page.text.language)
    if "/currency" in wanted and len(codes) == 1:
        yield Claim(path="/currency", value=codes.pop(), rung=Rung.SELECTOR, source=source, quote=part.text)


def _parts(page: PageSources) -> list[Part]:
    every = [] if page.article is None else page.article.parts
    return [one for one in every if one.text and _PRICE.search(one.marks) and not _OTHER.search(one.marks)]


def _value(part: Part, leaf: Leaf) -> float | None:
    value = coerced(_LABEL.sub("", part.text), leaf)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
