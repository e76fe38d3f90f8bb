"""The price that a page shows for its product.

find           the price in elements that are marked as prices, else in labeled lines, else beside a note about taxes,
               else beside a word such as `now`, else in lines between heading and button, else in a line of its own
find_labelled  the one in labeled lines, to compare with what structured data states

Struck prices, prices of other products and amounts with words such as `save` or `shipping` do not count. If two prices
are close to each other, none is found.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from curtsy.content import text as prose
from curtsy.content.main_content.phrases import MAX_HEADING, leads_elsewhere
from curtsy.extract.article_words import any_of
from curtsy.extract.sources import PageSources
from curtsy.extract.values import coerced
from curtsy.grounding.currencies import codes_of, has_money
from curtsy.grounding.numbers import Number, numbers
from curtsy.grounding.schema import Leaf

_TAGS = frozenset(
    ("span", "div", "p", "strong", "b", "td", "dd", "li", "ins", "del", "s", "strike", "bdi", "em", "small", "h2", "h3",
     "h4", "data", "a", "label", "section", "button", "sup")
)  # fmt: skip
_STRUCK_TAGS = frozenset(("del", "s", "strike"))
_MARKS = ("class", "id", "itemprop", "data-testid", "data-test", "data-qa", "data-component")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PRICE = re.compile(
    r"(?:^|[\s_\-])(?:price|prices|preis|prix|precio|prezzo|prijs|cena|pris)(?:$|[\s_\-])", re.IGNORECASE
)
_OLD = re.compile(rf"(?:^|[\s_\-]){any_of('old_price_marks')}(?:$|[\s_\-])", re.IGNORECASE)
_OTHER_BEFORE = re.compile(
    rf"(?:^|\W)(?:{any_of('not_price_before')}|\d{{1,3}} ?[x×]|\d{{1,3}} for)\W{{0,6}}$", re.IGNORECASE
)
_OTHER_AFTER = re.compile(rf"\W{{0,3}}/|\W{{0,3}}{any_of('not_price_after')}(?:\W|$)", re.IGNORECASE)
_OTHER_LINE = re.compile(rf"\b(?:{any_of('not_price_before')}|{any_of('not_price_after')}|from|ab)\b", re.IGNORECASE)
#: the line before or after an amount says what it is: `Deposit`, `per month for 12 months`
_OTHER_START = re.compile(
    rf"\W{{0,3}}(?:{any_of('not_price_before')}|{any_of('not_price_after')})(?!\w)", re.IGNORECASE
)
_PER = re.compile(r"\W{0,3}(?:per|pro|/)\s", re.IGNORECASE)
#: words of pages that sell something
_SHOP = re.compile(rf"(?<![^\W\d_]){any_of('shop_words')}", re.IGNORECASE)
_LABEL = re.compile(
    rf"\W{{0,3}}(?:{any_of('price_adjectives')} )?{any_of('price_labels')}\s?[:：]?\s{{0,2}}", re.IGNORECASE
)
_LABELLED_LINE = re.compile(f"^{_LABEL.pattern}", re.IGNORECASE | re.MULTILINE)
_BUY = re.compile(rf"\W{{0,4}}{any_of('buy_labels')}\W{{0,4}}", re.IGNORECASE)
#: `inkl. 19 % MwSt.`, `incl. VAT`, `TTC`: only prices that are valid have it
_TAX = re.compile(
    r"(?<![^\s(*])(?:in[ck]l?[a-zéè]{0,10}\.? (?:\d{1,2}(?:[.,]\d)? ?% )?(?:vat|mwst|ust|btw|moms|iva|tva|tax|gst)\b"
    r"|ttc\b|tva incluse|iva (?:incl|compr))|税込|с ндс",
    re.IGNORECASE,
)
#: what a price is compared with, and how the current one is called: `statt 89,00 € nur 69,00 €`
_WAS = re.compile(rf"\W{{0,3}}{any_of('was_labels')}\W{{0,6}}", re.IGNORECASE)
_NOW = re.compile(rf"\W{{0,3}}{any_of('now_labels')}\W{{0,6}}", re.IGNORECASE)
#: a class says that there is another price, too: `with-list-price`
_WITH = re.compile(r"(?:^|(?<=[\s_\-]))(?:with|after|has|mit|avec|con|com)-\S{0,60}", re.IGNORECASE)
#: an amount that needs no currency: `49,-`
_DASHED = re.compile(r"\d\s?[.,][\-–—]")
#: behind an amount: `.–`
_MAX_SIGN = 3
#: around a number: the sign of its currency
_REACH = 6
_MAX_ELEMENT, _MAX_COMPARED, _MAX_LINE, _MAX_SHORT = 160, 80, 60, 40
_MAX_ELEMENTS = 80
#: an old price beside the current one
_MAX_BOX = 400
#: from the heading to the price, and between two prices of different things
_FAR, _APART = 2_500, 250
#: from a price to the heading below it
_ABOVE = 100
#: words before a price in a sentence: `a voucher of £0.20`
_MAX_BEFORE = 8


class Price(NamedTuple):
    value: float
    start: int
    end: int
    codes: frozenset[str]


def find(page: PageSources, leaf: Leaf) -> Price | None:
    shown = _Shown(page, leaf)
    found = shown.first(shown.marked()) or shown.only(shown.labelled()) or shown.only(shown.taxed())
    return found or shown.only(shown.compared()) or shown.only(shown.above_button()) or shown.only(shown.alone())


def find_labelled(page: PageSources, leaf: Leaf) -> Price | None:
    """The only price in labeled lines. No element may be marked as a price: it may be another one, such as a sale's."""
    if _LABELLED_LINE.search(page.text.text) is None:
        return None  # most pages, without reading the positions of their elements
    shown = _Shown(page, leaf)
    return None if any(shown.marked()) else shown.only(shown.labelled())


#: an element or line: its first character, and its price; None: it has several
_Candidate = tuple[int, Price | None]


class _Shown:
    def __init__(self, page: PageSources, leaf: Leaf) -> None:
        assert page.document is not None
        assert page.article is not None
        visible = prose.read(page.document.page_tree(), spans_of=_TAGS)
        self.text, self._leaf, self._language = visible.text, leaf, page.text.language
        self._article = page.article
        self._spans = [one for one in visible.spans if one.end > one.start]
        self._struck = self._struck_spans()
        self._seams = {
            at
            for one in self._spans
            for at in (one.start, one.end)
            if self.text[max(0, at - 1) : at].isalnum() and self.text[at : at + 1].isalnum()
        }
        self._cuts = sorted(self._seams)
        heading = page.article.heading
        self._heading = None if heading is None else heading[1]
        self._above = 0 if heading is None else heading[0] - _ABOVE
        #: where a section about other products begins: `You may also like`
        self._stop = min(
            (one.start for one in self._spans
             if one.start >= (self._heading or 0) and (one.node.tag in ("h2", "h3", "h4") or self._is_bold_line(one))
             and leads_elsewhere(self.text[one.start : min(one.end, one.start + MAX_HEADING)])),
            default=len(self.text),
        )  # fmt: skip

    def _is_bold_line(self, span: prose.Span) -> bool:
        """Old pages have bold lines instead of headings."""
        around = self.text[max(0, span.start - 1) : span.start] + self.text[span.end : span.end + 1]
        return span.node.tag in ("b", "strong") and not around.strip("\n") and span.end - span.start <= _MAX_SHORT

    def _struck_spans(self) -> list[tuple[int, int]]:
        """Elements with an old price. A class of a box counts only if no element within it is struck: in
        `<div class="discount">£9 <s>£12</s></div>`, it is about both."""
        every = [one for one in self._spans if _is_struck(one.node)][:_MAX_ELEMENTS]
        return [
            (one.start, one.end)
            for one in every
            if one.node.tag in _STRUCK_TAGS or not any(self._is_amount_beside(inner, one) for inner in every)
        ]

    def _is_amount_beside(self, inner: prose.Span, outer: prose.Span) -> bool:
        """Whether an element has an amount, and the one that contains it has another."""
        if outer.end - outer.start > _MAX_BOX or not outer.start <= inner.start <= inner.end <= outer.end:
            return False
        beside = self.text[outer.start : inner.start] + self.text[inner.end : outer.end]
        return _has_digit(self.text[inner.start : inner.end]) and _has_digit(beside)

    # Where prices are

    def marked(self) -> Iterator[_Candidate]:
        """Elements that are marked as prices, without those inside of others."""
        spans = sorted(
            (one for one in self._spans if one.end - one.start <= _MAX_ELEMENT and _PRICE.search(_marks(one.node))),
            key=lambda one: (one.start, -one.end),
        )
        last = -1
        for number, one in enumerate(spans[:_MAX_ELEMENTS]):
            is_free = last <= one.start < self._stop and not self._article.is_beside(one.node)
            if is_free and not self._is_in_sentence(one.start, one.end):
                found = list(self._candidate(one.start, one.end, bare=True))
                if found and found[0][1] is None and self._are_within(one, spans[number + 1 : _MAX_ELEMENTS]):
                    continue  # a box of several prices that are marked themselves
                last = one.end
                yield from found

    def _are_within(self, box: prose.Span, marked: list[prose.Span]) -> bool:
        """Whether all prices of an element are in elements within it."""
        inner = [one for one in marked if one.end <= box.end]
        return all(
            any(one.start <= price.start and price.end <= one.end for one in inner)
            for price in self._amounts(box.start, box.end)
        )

    def _is_in_sentence(self, start: int, end: int) -> bool:
        """Whether its line has many words before it."""
        line = self.text.rfind("\n", 0, start) + 1
        return len(self.text[line:start].split()) > _MAX_BEFORE

    def labelled(self) -> Iterator[_Candidate]:
        """Lines such as `Price: $16.50`; the amount may be in the next line."""
        every = list(self._lines(0, self._stop))
        for (start, end), after in zip(every, [*every[1:], (0, 0)], strict=False):  # a page may have no lines
            label = _LABEL.match(self.text, start, end) if end - start <= _MAX_LINE else None
            if label is None or _PER.match(self.text, label.end(), end):
                continue
            at, stop = (label.end(), end) if label.end() < end else after
            if stop - at <= _MAX_SHORT and not self._article.is_line_beside(start):
                yield from self._candidate(at, stop)

    def taxed(self) -> Iterator[_Candidate]:
        """Short lines below the heading that say that the amount contains taxes, or whose next line begins with it."""
        every = list(self._lines(self._heading or 0, self._stop))
        for (start, end), (after, last) in zip(every, [*every[1:], (0, 0)], strict=False):
            if end - start > _MAX_LINE or self._article.is_line_beside(start):
                continue
            note = _TAX.search(self.text, start, end) or _TAX.match(self.text, after, min(last, after + _MAX_SHORT))
            if note is not None:
                yield from self._candidate(start, min(end, note.start()) if note.start() >= start else end)

    def compared(self) -> Iterator[_Candidate]:
        """Short lines below the heading with an old and a current price, or with a word for the current one alone."""
        for start, end in self._free_lines(_MAX_COMPARED):
            if (price := self._current(start, end)) is not None:
                yield start, price

    def _current(self, start: int, end: int) -> Price | None:
        """The only amount of a line that is not an old price, if the line has only amounts and words for them."""
        current: list[Price] = []
        at, is_told = start, False
        for price in self._of_piece(start, end, every=True):
            before = self.text[at : price.start]
            is_was, is_now = _WAS.fullmatch(before) is not None, _NOW.fullmatch(before) is not None
            if not is_was and not is_now and any(one.isalnum() for one in before):
                return None
            if not is_was and not self._is_struck(price.start):
                current.append(price)
            at, is_told = price.end, is_told or is_was or is_now
        rest = _TAX.sub("", self.text[at:end])
        is_all = is_told and len(current) == 1 and not any(one.isalnum() for one in rest)
        return current[0] if is_all else None

    def above_button(self) -> Iterator[_Candidate]:
        """Short lines from the heading to the button that buys the product."""
        if self._heading is None:
            return
        zone = list(self._lines(self._heading, min(len(self.text), self._heading + _FAR)))
        buttons = [start for start, end in zone if end - start <= _MAX_SHORT and _BUY.fullmatch(self.text, start, end)]
        for start, end in zone:
            is_near = buttons and start < buttons[0] + _APART and end - start <= _MAX_SHORT
            if is_near and not _OTHER_LINE.search(self.text, start, end):
                yield from self._candidate(start, end)

    def alone(self) -> Iterator[_Candidate]:
        """Lines below the heading that are nothing but an amount, on a page that sells something."""
        for start, end in self._free_lines(_MAX_SHORT):
            for at, price in self._candidate(start, end):
                if price is None or (price.start <= start + 1 and price.end + _MAX_SIGN >= end):
                    yield at, price

    def _free_lines(self, most: int) -> Iterator[tuple[int, int]]:
        """Short lines below the heading of a page that sells something. No line beside them may be about another
        amount."""
        if self._heading is None or _SHOP.search(self.text) is None:
            return
        every = list(self._lines(self._heading, min(self._stop, self._heading + _FAR)))
        for number, (start, end) in enumerate(every):
            around = [*every[max(0, number - 1) : number], *every[number + 1 : number + 2]]
            is_other = any(self._says_other(*one) for one in around)
            if end - start <= most and not is_other and not self._article.is_line_beside(start):
                yield start, end

    def _says_other(self, start: int, end: int) -> bool:
        """Whether a short line without an amount is about that of the line before or after it."""
        line = self.text[start:end]
        is_short = len(line) <= _MAX_SHORT and not has_money(line) and _DASHED.search(line) is None
        return is_short and _OTHER_START.match(self.text, start, end) is not None

    def _lines(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        at = start
        for line in self.text[start:stop].split("\n"):
            if line.strip():
                yield at, at + len(line)
            at += len(line) + 1

    # Which one it is

    def only(self, found: Iterable[_Candidate]) -> Price | None:
        every = list(islice(found, _MAX_ELEMENTS))
        prices = [price for _, price in every if price is not None]
        return prices[0] if prices and len(prices) == len(every) and len({one.value for one in prices}) == 1 else None

    def first(self, found: Iterable[_Candidate]) -> Price | None:
        """The only price, or the first one below the heading if no other is close to it."""
        every = list(found)
        if self._heading is not None:
            below = [one for one in every if one[0] >= self._heading]
            every = below or [one for one in every if one[0] >= self._above]
        if (sole := self.only(every)) is not None or not every:
            return sole
        at, price = every[0]
        if price is None or self._heading is None or not 0 <= at - self._heading <= _FAR:
            return None
        others = [start for start, other in every if other is None or other.value != price.value]
        return price if others[0] - price.end > _APART else None

    # Amounts

    def _candidate(self, start: int, end: int, *, bare: bool = False) -> Iterator[_Candidate]:
        """The price of an element or a line. `bare`: it needs no currency."""
        found = list(self._amounts(start, end))
        if not found and bare and not self._is_struck(start):
            found = list(self._bare(start, end))
        if found:
            same = len({one.value for one in found}) == 1
            yield start, found[0] if same else None

    def _amounts(self, start: int, end: int) -> Iterator[Price]:
        cuts = self._cuts[bisect_right(self._cuts, start) : bisect_left(self._cuts, end)]
        for first, last in zip([start, *cuts], [*cuts, end], strict=True):
            yield from self._of_piece(first, last)

    def _of_piece(self, start: int, end: int, *, every: bool = False) -> Iterator[Price]:
        """The amounts of a text that no element ends within a word. `every`: old prices, too."""
        text = self.text[start:end]
        for number in numbers(text, self._language):
            codes = codes_of(text, number.start, number.whole_end, self._language)
            value = _read(number)
            if not codes or value is None or number.percent or number.scale:
                continue
            if not every and self._is_other(text, start, number):
                continue
            first, last = self._with_sign(text, number)
            yield Price(value, start + first, start + last, frozenset(codes))

    def _bare(self, start: int, end: int) -> Iterator[Price]:
        value = self._value(self.text[start:end])
        if value is not None and bisect_right(self._cuts, start) == bisect_left(self._cuts, end):
            yield Price(value, start, end, frozenset())

    def _value(self, text: str) -> float | None:
        value = coerced(text.rstrip(" ,.-–"), self._leaf)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None

    def _with_sign(self, text: str, number: Number) -> tuple[int, int]:
        """The span of the amount with the sign of its currency, which is before or after it."""
        first, last = number.start, number.whole_end
        if codes_of(text, first, len(text), self._language):
            before = text[max(0, first - _REACH) : first].rstrip()
            return len(text[:first].rstrip()) - len(before.split()[-1]), last
        after = text[last : last + _REACH]
        sign = after.lstrip(" ,.-–\u00a0\u202f").split()[:1]
        return first, last + (after.find(sign[0]) + len(sign[0]) if sign else 0)

    def _is_other(self, text: str, offset: int, number: Number) -> bool:
        start, end = offset + number.start, offset + number.end
        if self._is_struck(start) or self._continues(start, end):
            return True
        line = text.rfind("\n", 0, number.start) + 1
        first, last = self._with_sign(text, number)
        if text[first : first + 1] in ("-", "−", "–") and not text[line:first].strip():
            return True  # `-$5`: what is saved
        return bool(
            _OTHER_BEFORE.search(text[max(line, first - 24) : first]) or _OTHER_AFTER.match(text[last : last + 24])
        )

    def _continues(self, start: int, end: int) -> bool:
        """Whether the next element has more digits of the same number: `19` and `99` in a smaller type."""
        return self.text[end : end + 1].isdigit() or any(
            at in self._seams and self.text[at - 1 : at + 1].isdecimal() for at in (start, end)
        )

    def _is_struck(self, at: int) -> bool:
        return any(start <= at < end for start, end in self._struck)


def _read(number: Number) -> float | None:
    """In Germany `1.299 €` is one amount; where the page's language does not decide, it has no value."""
    value = next(iter(number.readings)) if len(number.readings) == 1 else None
    return float(value) if value is not None and value > 0 else None


def _has_digit(text: str) -> bool:
    return any(one.isdecimal() for one in text)


def _marks(node: LexborNode) -> str:
    marks = " ".join(node.attributes.get(name) or "" for name in _MARKS)[:400]
    return _WITH.sub("", _CAMEL.sub("-", marks))


def _is_struck(node: LexborNode) -> bool:
    if node.tag in _STRUCK_TAGS or "line-through" in (node.attributes.get("style") or ""):
        return True
    return _OLD.search(_marks(node)) is not None
