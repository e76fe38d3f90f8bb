"""What a page says about itself, for the check that a quote relates to its field; computed on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from curtsy.content import text as prose
from curtsy.content.document import Document
from curtsy.content.styles import words
from curtsy.extract.article_page import ArticlePage
from curtsy.extract.bylines import names_in

_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "legend", "caption"))
_TITLE_KEYS = ("og:title", "twitter:title", "headline", "name", "og:site_name")
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
        return tuple(dict.fromkeys(one for one in (title, *repeated, *self._said(_TITLE_KEYS)) if one))

    @cached_property
    def people(self) -> tuple[str, ...]:
        shown = [part.text for part, marked in self._article.bylines() if names_in(part.text, marked=marked)]
        return tuple(dict.fromkeys([*self._said(_PEOPLE_KEYS), *shown]))

    @cached_property
    def headings(self) -> frozenset[int]:
        visible = prose.read(self._document.page_tree(), spans_of=_HEADINGS)
        return frozenset(one.start for one in visible.spans if one.end > one.start)

    @cached_property
    def prices(self) -> tuple[tuple[int, int], ...]:
        """Spans of short elements whose class or attribute marks them as a current price."""
        visible = prose.read(self._document.page_tree(), spans_of=_PRICE_TAGS)
        found = (one for one in visible.spans if 0 < one.end - one.start <= _MAX_PRICE)
        return tuple((one.start, one.end) for one in found if _is_price(one.node.attributes))

    def _said(self, keys: tuple[str, ...]) -> list[str]:
        """Return the texts under these keys anywhere in the page's data."""
        found: list[str] = []
        stack: list[Any] = [entry.get("data") for entry in self._data]
        for _ in range(_MAX_NODES):
            if not stack:
                break
            value = stack.pop()
            if isinstance(value, dict):
                for key, inner in value.items():
                    found += _texts(inner) if key in keys else []
                    stack += [inner] if isinstance(inner, dict | list) else []
            elif isinstance(value, list):
                stack += value[:200]
        return found


def _is_price(attributes: Mapping[str, str | None]) -> bool:
    named = words(attributes) | {(attributes.get(name) or "").lower() for name in ("itemprop", "property")}
    return not named.isdisjoint(_PRICES) and named.isdisjoint(_OTHER_PRICES)


def _share(heading: str, title: str) -> float:
    words = heading.casefold().split()
    return sum(word in title.casefold() for word in words) / max(1, len(words))


def _texts(value: Any) -> list[str]:
    many = value if isinstance(value, list) else [value]
    named = [one.get("name") if isinstance(one, dict) else one for one in many]
    return [one for one in named if isinstance(one, str) and one.strip()]
