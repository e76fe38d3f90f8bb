"""What a page says about itself, for the check that a quote relates to its field; computed on first use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from selectolax.lexbor import LexborNode

from curtsy.content import text as prose
from curtsy.content.document import Document
from curtsy.content.styles import words
from curtsy.extract import foreign_parts
from curtsy.extract.article_page import ArticlePage
from curtsy.extract.bylines import names_in
from curtsy.extract.stated_values import StatedValues

_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "legend", "caption"))
_MAIN_HEADINGS = frozenset(("h1", "h2", "h3"))
#: items that a page has, but is not about
_PARTS = frozenset(
    ("Person", "BreadcrumbList", "ListItem", "ItemList", "SiteNavigationElement", "ImageObject", "Brand", "Review",
     "Comment", "Place", "Country", "WPHeader", "WPFooter", "WPSideBar", "WebPageElement")
)  # fmt: skip
_MAX_NAMES = 6
_TITLE_KEYS = ("og:title", "twitter:title", "headline", "og:site_name")
_PEOPLE_KEYS = ("author", "creator", "byl", "parsely-author", "sailthru.author", "citation_author", "dc:creator")
_MAX_NODES = 2_000
_PRICE_TAGS = frozenset(
    ("span", "div", "p", "strong", "b", "ins", "td", "dd", "em", "li", "h2", "h3", "h4", "font", "bdi")
)
_MAX_PRICE = 40
_PRICES = frozenset(
    ("price", "prices", "preis", "prix", "precio", "prezzo", "preco", "cena", "prijs", "pris", "amount")
)
#: earlier prices, and prices of something else
_OTHER_PRICES = frozenset(
    ("old", "was", "list", "regular", "strike", "striked", "strikethrough", "compare", "original", "before", "save",
     "saving", "savings", "discount", "shipping", "delivery", "unit", "msrp", "rrp", "crossed", "label", "range",
     "filter")
)  # fmt: skip
_MARKED_TAGS = frozenset(("span", "div", "p", "strong", "b", "em", "li", "td", "dd", "a"))
_MAX_MARKED = 120
_MAX_AROUND = 4
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|[:/_-]")
#: share of the words of a heading that the title has too
_REPEATED = 0.6


class HtmlContext:
    """The context of an HTML page."""

    def __init__(self, document: Document, data: list[dict[str, Any]], article: ArticlePage) -> None:
        self._document, self._data, self._article = document, data, article

    @cached_property
    def titles(self) -> tuple[str, ...]:
        root = self._document.tree.root
        headings = [] if root is None else [" ".join(node.text().split()) for node in root.css("h1")[:5]]
        title = self._document.title or ""
        # A heading that the title does not repeat may be a slogan.
        repeated = [one for one in headings if not title or _share(one, title) >= _REPEATED]
        names = list(dict.fromkeys(self._said(("name",))))  # of many items, most are of others
        said = [*self._said(_TITLE_KEYS), *(names if len(names) <= _MAX_NAMES else ())]
        return tuple(dict.fromkeys(one for one in (title, *repeated, *said) if one))

    @cached_property
    def people(self) -> tuple[str, ...]:
        shown = [part.text for part, marked in self._article.bylines() if names_in(part.text, marked=marked)]
        return tuple(dict.fromkeys([*self._said(_PEOPLE_KEYS), *shown]))

    @cached_property
    def headings(self) -> frozenset[int]:
        visible = prose.read(self._document.page_tree(), spans_of=_HEADINGS)
        return frozenset(one.start for one in visible.spans if one.end > one.start)

    @cached_property
    def main_heading(self) -> tuple[int, int] | None:
        """The first `h1` that is most like the title; a lower heading only if the title repeats it."""
        visible = prose.read(self._document.page_tree(), spans_of=_MAIN_HEADINGS)
        title = self._document.title or ""
        found = [
            (_share(visible.text[one.start : one.end], title), one.node.tag == "h1", -one.start, one.end)
            for one in visible.spans
            if one.end > one.start
        ]
        firsts = [one for one in found if one[1]] or [one for one in found if one[0] >= _REPEATED]
        if not firsts:
            return None
        _, _, start, end = max(firsts)
        return -start, end

    @cached_property
    def prices(self) -> tuple[tuple[int, int], ...]:
        """Spans of short elements whose class or attribute marks them as a current price."""
        visible = prose.read(self._document.page_tree(), spans_of=_PRICE_TAGS)
        found = (one for one in visible.spans if 0 < one.end - one.start <= _MAX_PRICE)
        return tuple((one.start, one.end) for one in found if _is_price(one.node.attributes))

    @cached_property
    def marked(self) -> tuple[tuple[int, int, str], ...]:
        """Spans of short elements that microdata, RDFa or microformats name, with these names."""
        visible = prose.read(self._document.page_tree(), spans_of=_MARKED_TAGS)
        found = (
            (one.start, one.end, _markup_of(one.node))
            for one in visible.spans
            if 0 < one.end - one.start <= _MAX_MARKED
        )
        return tuple(one for one in found if one[2])

    @cached_property
    def foreign(self) -> tuple[tuple[int, int], ...]:
        return tuple(foreign_parts.spans(self._document))

    @cached_property
    def headed(self) -> tuple[tuple[int, int], ...]:
        return tuple(foreign_parts.of_companies(self._document))

    def states(self, path: str, value: Any) -> bool | None:
        return self._stated.states(path, value)

    @cached_property
    def _stated(self) -> StatedValues:
        return StatedValues(self._data)

    def _said(self, keys: tuple[str, ...]) -> list[str]:
        """Return the texts under these keys anywhere in the page's data."""
        found: list[str] = []
        stack: list[Any] = [entry.get("data") for entry in self._data]
        for _ in range(_MAX_NODES):
            if not stack:
                break
            value = stack.pop()
            if isinstance(value, dict) and _PARTS.isdisjoint(_types_of(value)):
                for key, inner in value.items():
                    found += _texts(inner) if key in keys else []
                    stack += [inner] if isinstance(inner, dict | list) else []
            elif isinstance(value, list):
                stack += value[:200]
        return found


def _is_price(attributes: Mapping[str, str | None]) -> bool:
    named = words(attributes) | {(attributes.get(name) or "").lower() for name in ("itemprop", "property")}
    return not named.isdisjoint(_PRICES) and named.isdisjoint(_OTHER_PRICES)


def _markup_of(node: LexborNode) -> str:
    """Return the names of properties of an element and of the elements around it, as words; empty if it has none."""
    own = _properties(node)
    around: list[str] = []
    at = node.parent
    for _ in range(_MAX_AROUND if own else 0):
        if at is None:
            break
        around += _properties(at)
        at = at.parent
    return " ".join(_CAMEL.sub(" ", name) for name in [*own, *around])


def _properties(node: LexborNode) -> list[str]:
    attributes = node.attributes
    named = [attributes.get(name) or "" for name in ("itemprop", "property")]
    formats = [one[2:] for one in (attributes.get("class") or "").split() if one.startswith(("p-", "u-"))]
    return [one for text in named for one in text.split()] + formats


def _share(heading: str, title: str) -> float:
    words = heading.casefold().split()
    return sum(word in title.casefold() for word in words) / max(1, len(words))


def _types_of(item: dict[str, Any]) -> list[str]:
    """Return the types of an item; people and entries of lists are not what a page is about."""
    named = item.get("@type", item.get("type"))
    return [str(one).rpartition("/")[2] for one in (named if isinstance(named, list) else [named])]


def _texts(value: Any) -> list[str]:
    many = value if isinstance(value, list) else [value]
    named = [one.get("name") if isinstance(one, dict) else one for one in many]
    return [one for one in named if isinstance(one, str) and one.strip()]
