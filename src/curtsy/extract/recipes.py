"""The ingredients of a recipe as the page shows them: marked elements, lists in marked boxes, lists below a label."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

from selectolax.lexbor import LexborNode

from curtsy.content import text as prose
from curtsy.content.document import Document
from curtsy.core.claims import Claim, Rung
from curtsy.extract.article_page import ArticlePage
from curtsy.extract.article_words import WORDS, any_of
from curtsy.extract.sources import PageSources
from curtsy.grounding.json_pointer import keys
from curtsy.grounding.schema import Leaf, Schema

#: names of a leaf that lists ingredients
NAMES = ("ingredients", "ingredient", "recipeingredient", "recipe_ingredient", "recipe_ingredients")
_LISTS = frozenset(("ul", "ol", "table", "dl"))
_ITEMS = frozenset(("li", "tr", "dd"))
_BOXES = frozenset(("div", "section", "aside", "fieldset", "form", "details", "article"))
_TAGS = _LISTS | _ITEMS | _BOXES | frozenset(("p", "span", "label", "a"))
_MARKS = ("class", "id", "itemprop", "data-testid", "data-qe-id", "name", "property")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LABEL = re.compile(
    rf"\W{{0,4}}(?:the |die |les |los |gli |de )?{any_of('ingredient_labels')}"
    r"(?: ?\([^()]{0,40}\)| (?:for|für|pour|para|per|voor) .{1,40}"
    r"|)\W{0,3}",
    re.IGNORECASE,
)
_METHOD = re.compile(rf"\W{{0,4}}{any_of('method_labels')}\W{{0,3}}", re.IGNORECASE)
_BULLET = re.compile(r"[\s▢▪•·●○◦□☐✓✔*–—-]{1,9}(?=\S)")
_LEAST, _MOST = 2, 100
_MAX_ITEM = 240
_MAX_LABEL = 80
#: marks, boxes and labels that are tried
_MAX_PLACES = 20
#: between the label and its list, and from the label to what follows the ingredients
_MAX_GAP, _MAX_REACH = 400, 6_000
#: share of the page's text that a box of ingredients may have
_MAX_SHARE, _SMALL_BOX = 0.7, 1_500

_SINGULAR = frozenset(("ingredient", "zutat", "skladnik"))

_Span = tuple[int, int]


def is_recipe(schema: Schema) -> bool:
    """Return whether a record is about a recipe: its type says so, or it has ingredients."""
    return "Recipe" in schema.types or any(keys(leaf.path)[0].lower() in NAMES for leaf in schema.leaves)


def typed(schema: Schema) -> Schema:
    """A schema with ingredients and without a type is about a recipe."""
    return replace(schema, types=("Recipe",)) if not schema.types and is_recipe(schema) else schema


def claims(page: PageSources, missing: Iterable[Leaf]) -> Iterator[Claim]:
    """Yield the ingredients, each with the span of its element."""
    wanted = [leaf for leaf in missing if _is_of_ingredients(leaf)]
    if not wanted or page.document is None or page.article is None:
        return
    shown = _Shown(page.document, page.article)
    for number, (start, end) in enumerate(shown.ingredients()):
        quote = shown.text[start:end]
        yield Claim(
            path=wanted[0].path.replace("*", str(number)), value=" ".join(quote.split()), rung=Rung.SELECTOR,
            source=page.text, quote=quote, span=(start, end),
        )  # fmt: skip


def _is_of_ingredients(leaf: Leaf) -> bool:
    names = keys(leaf.path)
    return len(names) == 2 and names[1] == "*" and names[0].lower() in NAMES and leaf.type == "string"


class _Shown:
    """The visible text of a page with the spans of its lists and boxes."""

    def __init__(self, document: Document, article: ArticlePage) -> None:
        visible = prose.read(document.page_tree(), spans_of=_TAGS)
        self.text, self._article = visible.text, article
        self._spans = [one for one in visible.spans if one.end > one.start and not article.is_elsewhere(one.start)]

    def ingredients(self) -> list[_Span]:
        """Of the marked ones, those with the most quantities; else those below a label."""
        for ways in ((self._marked, self._boxed), (self._labelled,)):
            best = max((self._kept(found) for way in ways for found in way()), key=self._quantities, default=[])
            if len(best) >= _LEAST:
                return best[:_MOST]
        return []

    def _quantities(self, found: Sequence[_Span]) -> tuple[int, int]:
        """How many have a quantity: an article may also list what it explains."""
        return sum(any(map(str.isnumeric, self.text[start:end])) for start, end in found), len(found)

    def _kept(self, found: Iterable[_Span]) -> list[_Span]:
        """Items with text, each once; a line that ends with a colon is the heading of a group."""
        kept: dict[str, _Span] = {}
        for start, end in found:
            bullet = _BULLET.match(self.text, start, end)
            start = bullet.end() if bullet else start
            text = self.text[start:end].strip()
            end = start + len(self.text[start:end].rstrip())
            if text and len(text) <= _MAX_ITEM and text[-1] not in ":：" and any(map(str.isalpha, text)):
                kept.setdefault(" ".join(text.casefold().split()), (start, end))
        return list(kept.values())

    def _marked(self) -> Iterator[list[_Span]]:
        """Elements that are marked as one ingredient, by their mark, without those inside of others."""
        found: dict[str, list[_Span]] = {}
        for one in self._spans:
            mark = next((token for token in _tokens(one.node) if _is_one(token)), None)
            if mark is not None:
                found.setdefault("-".join(mark), []).append((one.start, one.end))
        for spans in list(found.values())[:_MAX_PLACES]:
            yield list(_outermost(spans))

    @cached_property
    def _lists(self) -> list[_Span]:
        return sorted((one.start, one.end) for one in self._spans if one.node.tag in _LISTS)

    def _items(self, start: int, end: int) -> list[_Span]:
        """The items of lists within a span, without those that contain others; else the paragraphs."""
        inside = [one for one in self._spans if start <= one.start and one.end <= end]
        for tags in (_ITEMS, frozenset(("p",))):
            found = sorted({(one.start, one.end) for one in inside if one.node.tag in tags}, key=_outer_first)
            if len(found) >= _LEAST:
                return [one for one, after in zip(found, [*found[1:], (end, end)], strict=True) if after[0] >= one[1]]
        return []

    def _boxed(self) -> Iterator[list[_Span]]:
        """The items in boxes that are marked as ingredients."""
        most = max(_SMALL_BOX, _MAX_SHARE * len(self.text))
        boxes = _outermost(
            (one.start, one.end)
            for one in self._spans
            if one.node.tag in _BOXES | _LISTS and one.end - one.start < most and any(map(_is_box, _tokens(one.node)))
        )
        yield [item for box in islice(boxes, _MAX_PLACES) for item in self._items(*box)]

    def _labelled(self) -> Iterator[list[_Span]]:
        """The lists between the line `Ingredients` and the line `Method`; without the latter, the first list."""
        labels = (
            end for at, end in self._lines(0, len(self.text))
            if end - at <= _MAX_LABEL and _LABEL.fullmatch(self.text, at, end) and not self._article.is_elsewhere(at)
        )  # fmt: skip
        for end in islice(labels, _MAX_PLACES):
            stop = self._method_after(end)
            first = next((one for one in self._lists if end <= one[0] <= end + _MAX_GAP), None)
            if first is not None and (stop is None or first[0] < stop):
                found = self._items(end, stop) if stop is not None else self._items(*first)
            else:
                found = list(self._lines(end, stop)) if stop is not None else []
            if all(one[1] - one[0] <= _MAX_ITEM for one in found) and not self._is_menu(found):
                yield found

    def _is_menu(self, found: Sequence[_Span]) -> bool:
        """Whether each item is a link and none has a quantity."""
        links = {(one.start, one.end) for one in self._spans if one.node.tag == "a"}
        return self._quantities(found)[0] == 0 and links.issuperset(found)

    def _method_after(self, start: int) -> int | None:
        return next(
            (at for at, end in self._lines(start, min(len(self.text), start + _MAX_REACH))
             if end - at <= _MAX_LABEL and _METHOD.fullmatch(self.text, at, end)),
            None,
        )  # fmt: skip

    def _lines(self, start: int, stop: int) -> Iterator[_Span]:
        at = start
        for line in self.text[start:stop].split("\n"):
            if line.strip():
                yield at, at + len(line)
            at += len(line) + 1


def _outer_first(span: _Span) -> _Span:
    return span[0], -span[1]


def _outermost(found: Iterable[_Span]) -> Iterator[_Span]:
    """Spans that are not inside of another one, in order."""
    last = -1
    for start, end in sorted(found, key=_outer_first):
        if start >= last:
            yield start, end
            last = end


def _tokens(node: LexborNode) -> list[list[str]]:
    """The words of each class and mark: `recipe-ingredients__item` -> [recipe, ingredients, item]."""
    attributes = node.attributes
    marks = " ".join(attributes.get(name) or "" for name in _MARKS)[:400]
    if "ngred" not in marks and not any(word in marks for word in _MARK_STEMS):
        return []
    return [re.split(r"[_\-]{1,3}", _CAMEL.sub("-", token).lower()) for token in marks.split()]


_MARK_STEMS = ("utat", "kladni", "urovin", "ozzaval", "alzeme", "ings")


def _rest(token: Sequence[str]) -> tuple[str, set[str]] | None:
    """The word for ingredients and the words after it: `recipe-ingredients__item` -> ingredients, {item}."""
    at = max((number for number, word in enumerate(token) if word in WORDS["ingredient_marks"]), default=None)
    rest = set() if at is None else set(token[at + 1 :])
    return None if at is None or rest & WORDS["ingredient_parts"] else (token[at], rest)


def _is_one(token: Sequence[str]) -> bool:
    """Whether a mark ends with `ingredient`, or with `ingredients` and a word for an item."""
    word, rest = _rest(token) or ("", set())
    if word in _SINGULAR:
        return rest <= WORDS["ingredient_items"] | {"container", "wrapper", "text"}
    return (
        bool(word and rest) and token[-1] in WORDS["ingredient_items"] and rest <= WORDS["ingredient_items"] | {"list"}
    )


def _is_box(token: Sequence[str]) -> bool:
    return _rest(token) is not None
