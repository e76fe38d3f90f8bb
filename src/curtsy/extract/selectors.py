"""The second rung: values where selectors find them, by CSS, XPath, or patterns over the text.

What a pattern finds in the page's text rests on the sentence around it. What an element holds rests on that element:
its source is the element's text or attribute, its locator the selector. Everything is bounded: patterns are linear in
the text, expressions and pages have sizes, a page has its time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from curtsy import prose
from curtsy.evidence import Claim, Rung, Source, SourceKind
from curtsy.extract.choosing import fits
from curtsy.extract.sources import PageSources
from curtsy.extract.values import coerced
from curtsy.hints import Selector, compiled
from curtsy.schemas import Leaf, Schema

#: of the page's text that patterns see; of an element
_MAX_TEXT = 500_000
_MAX_ELEMENT_TEXT = 4_000
_MAX_SENTENCE = 400
#: of one leaf on one page
_MAX_VALUES = 3
_MAX_ITEMS = 50
#: elements or matches that one selector may look at
_MAX_FOUND = 500
#: XPath walks over at most so many elements, so that an expression that compares all with all ends too
_MAX_ELEMENTS = 20_000
#: for all selectors of a page; looked at between them
_MAX_SECONDS = 2.0
_WE = re.compile(
    r"\b(?:we|our|us|wir|unser\w*|uns|nous|notre|nos|nosotros|nuestr\w+|noi|nostr\w+|wij|we|ons|onze)\b", re.IGNORECASE
)
_END = re.compile(r"[.!?](?=\s+[^\sa-z\d])|\n")


class Found(NamedTuple):
    """A text that a selector leads to: what it rests on, and the words of that."""

    text: str
    source: Source
    quote: str


def claims(
    schema: Schema,
    page: PageSources,
    leaves: Iterable[Leaf] | None = None,
    known: Mapping[str, Sequence[str]] | None = None,
) -> list[Claim]:
    """What the schema's selectors find on the page, the best first for each leaf.

    `known` has values of leaves that others are about (`subject`); what is found here adds to it.
    """
    names = {path: list(values) for path, values in (known or {}).items()}
    ends = time.monotonic() + _MAX_SECONDS
    view = _View(page)
    found: list[Claim] = []
    for leaf in schema.leaves if leaves is None else leaves:
        own = _of_leaf(schema, leaf, view, names, ends) if leaf.path.count("*") <= 1 else []
        names.setdefault(leaf.path, []).extend(claim.value for claim in own if isinstance(claim.value, str))
        found += own
    return found


def _of_leaf(schema: Schema, leaf: Leaf, view: _View, names: Mapping[str, Sequence[str]], ends: float) -> list[Claim]:
    limit = _MAX_ITEMS if leaf.many else _MAX_VALUES
    found: dict[str, Claim] = {}
    for selector in schema.selectors.get(leaf.path, ()):
        if time.monotonic() > ends or (found and leaf.many):
            break
        if not fits(selector.pages, view.page.url, view.page.roles):
            continue
        for one in view.look(selector):
            value = coerced(one.text, leaf)
            if value is None or repr(value) in found or not _is_about(selector, one.quote, names):
                continue
            path = leaf.path.replace("*", str(len(found)))
            found[repr(value)] = Claim(path=path, value=value, rung=Rung.SELECTOR, source=one.source, quote=one.quote)
            if len(found) == limit:
                return list(found.values())
    return list(found.values())


def _is_about(selector: Selector, sentence: str, names: Mapping[str, Sequence[str]]) -> bool:
    if not all(compiled(pattern).search(sentence) for pattern in selector.also):
        return False
    if selector.subject is None or _WE.search(sentence):
        return True
    said = sentence.casefold()
    return any(name.casefold() in said for name in names.get(selector.subject, ()))


class _View:
    """A page as selectors look at it."""

    def __init__(self, page: PageSources) -> None:
        self.page = page
        self._tree: Any = None

    def look(self, selector: Selector) -> Iterator[Found]:
        if selector.css is None and selector.xpath is None:
            yield from self._in_text(selector)
            return
        locator = f"css:{selector.css}" if selector.css is not None else f"xpath:{selector.xpath}"
        if selector.attribute:
            locator += f" @{selector.attribute}"
        for text in self._texts(selector):
            source = Source(SourceKind.ATTRIBUTE, self.page.page, self.page.url, text, locator)
            if selector.pattern is None:
                yield Found(text, source, text)
            else:
                for match in _matches(selector.pattern, text):
                    yield Found(_group(match), source, text)

    def _in_text(self, selector: Selector) -> Iterator[Found]:
        text = self.page.text.text[:_MAX_TEXT]
        for match in _matches(selector.pattern or "", text):
            start, end = sentence_around(text, *match.span())
            said = text[start:end]
            yield Found(said.rstrip(".!?") if selector.sentence else _group(match), self.page.text, said)

    def _texts(self, selector: Selector) -> Iterator[str]:
        texts = self._by_css(selector) if selector.css is not None else self._by_xpath(selector)
        for text in texts:
            if text := text.strip()[:_MAX_ELEMENT_TEXT]:
                yield text

    def _by_css(self, selector: Selector) -> Iterator[str]:
        root = None if self.page.document is None else self.page.document.tree.root
        for node in [] if root is None else root.css(selector.css or "")[:_MAX_FOUND]:
            if selector.attribute:
                yield node.attributes.get(selector.attribute.lower()) or ""
            elif node.tag == "title":
                yield " ".join(node.text().split())
            else:
                yield prose.text(node, _MAX_ELEMENT_TEXT)

    def _by_xpath(self, selector: Selector) -> Iterator[str]:
        from lxml import etree

        tree = self._parsed()
        if tree is None:
            return
        try:
            found = etree.XPath(selector.xpath)(tree)
        except etree.XPathError:
            return
        for node in found[:_MAX_FOUND] if isinstance(found, list) else [found]:
            if isinstance(node, etree._Element):
                text = node.get(selector.attribute) if selector.attribute else "".join(node.itertext())
            else:
                text = node if isinstance(node, str) else str(node)
            yield " ".join((text or "").split())

    def _parsed(self) -> Any:
        """The page for lxml; None if it is too large to walk over again and again."""
        from lxml import etree

        if self._tree is None and self.page.document is not None:
            html = self.page.document.tree.html or ""
            parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
            try:
                tree = etree.fromstring(html.encode("utf-8", "replace"), parser)
            except (etree.XMLSyntaxError, ValueError):
                tree = None
            count = 0 if tree is None else sum(1 for _ in zip(range(_MAX_ELEMENTS + 1), tree.iter(), strict=False))
            self._tree = tree if tree is not None and count <= _MAX_ELEMENTS else False
        return self._tree if self._tree is not None and self._tree is not False else None


def _matches(pattern: str, text: str) -> Iterator[Any]:
    for count, match in enumerate(compiled(pattern).finditer(text)):
        if count == _MAX_FOUND:
            return
        yield match


def _group(match: Any) -> str:
    """Its group `value`, its first group that took part, or all of it."""
    groups = [match.groupdict().get("value"), *match.groups()]
    return str(next((one for one in groups if one is not None), match.group(0)))


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The sentence that has text[start:end], within its line and not much over 400 characters.

    >>> sentence_around("One. Two is here. Three.", 5, 8)
    (5, 17)
    """
    first = max(text.rfind("\n", 0, start) + 1, start - _MAX_SENTENCE)
    for stop in _END.finditer(text, first):
        if stop.end() > start:
            break
        first = stop.end()
    found = _END.search(text, max(end - 1, start), min(len(text), end + _MAX_SENTENCE))
    last = min(len(text), end + _MAX_SENTENCE) if found is None else found.end()
    while first < start and text[first].isspace():
        first += 1
    while last > end and text[last - 1].isspace():
        last -= 1
    return first, max(last, end)
