"""Ingredients of a recipe as the page shows them: marked elements, lists in marked boxes or below a label, amounts."""

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
from curtsy.extract import foreign_parts
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
#: `250 g`, `1/2 cup`, `3-4 EL`
_AMOUNT = re.compile(r"\W{0,3}[\d½¼¾⅓⅔⅛⅜⅝⅞]")
_MEASURE = re.compile(
    r"\W{0,3}[\d½¼¾⅓⅔⅛⅜⅝⅞][\d½¼¾⅓⅔⅛⅜⅝⅞.,/⁄ –-]{0,12}"
    rf"(?:{any_of('recipe_units')}\b|{any_of('recipe_units_unspaced')})",
    re.IGNORECASE,
)
_NUTRITION = re.compile(rf"\b{any_of('nutrition_words')}", re.IGNORECASE)
_NUTRITION_MARKS = re.compile(r"(?:^|[\s_\-])(?:nutri|nährwert|naehrwert)[a-z]{0,8}(?:$|[\s_\-])", re.IGNORECASE)
#: items of a list without a label, and the share that has amounts
_LEAST_AMOUNTS, _AMOUNTS_SHARE = 3, 0.6
#: share of different lines
_UNLIKE = 0.8
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
        spans = [one for one in visible.spans if one.end > one.start and not article.is_elsewhere(one.start)]
        nutrition = foreign_parts.Spans((one.start, one.end) for one in spans if _is_of_nutrition(one))
        self._spans = [one for one in spans if one.start not in nutrition]

    def ingredients(self) -> list[_Span]:
        """Of the marked ones, those with the most quantities; else those below a label; else a list of amounts."""
        for ways in ((self._marked, self._boxed), (self._labelled,), (self._measured,)):
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
            if (mark := _mark_of_one(one.node)) is not None:
                found.setdefault(mark, []).append((one.start, one.end))
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
                inner = [one for one, after in zip(found, [*found[1:], (end, end)], strict=True) if after[0] >= one[1]]
                return [line for item in inner for line in self._lines_of_item(item)]
        return []

    def _lines_of_item(self, item: _Span) -> list[_Span]:
        """A cell may have several ingredients, one in each line; most of these begin with an amount."""
        found = list(self._lines(*item))
        amounts = sum(
            _AMOUNT.match(self.text, *line) is not None and any(map(str.isalpha, self.text[slice(*line)]))
            for line in found
        )
        return found if len(found) > _LEAST and amounts > len(found) / 2 else [item]

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
        ends = list(islice(labels, _MAX_PLACES))
        for end, after in zip(ends, [*ends[1:], len(self.text)], strict=False):
            stop = self._method_after(end)
            if (
                stop is not None
                and after < stop
                and not any(_AMOUNT.match(self.text, *one) for one in self._lines(end, after))
            ):
                continue  # a link to the ingredients, before them
            near = [one for one in self._lists if end <= one[0] <= end + _MAX_GAP]
            first = next((one for one in near if self._has_amounts(self._items(*one))), next(iter(near), None))
            if first is not None and (stop is None or first[0] < stop):
                found = self._items(end, stop) if stop is not None else self._items(*first)
            else:
                found = list(self._lines(end, stop)) if stop is not None else []
            if (
                all(one[1] - one[0] <= _MAX_ITEM for one in found)
                and not self._is_menu(found)
                and self._are_unlike(found)
            ):
                yield found

    def _are_unlike(self, found: Sequence[_Span]) -> bool:
        """Whether few lines repeat others, as points or buttons beside each ingredient do."""
        return len({self.text[start:end] for start, end in found}) >= _UNLIKE * len(found)

    def _measured(self) -> Iterator[list[_Span]]:
        """Lists and paragraphs of which most items or lines are amounts, together with those right after them."""
        paragraphs = [
            (one.start, one.end) for one in self._spans
            if one.node.tag == "p" and self.text.count("\n", one.start, one.end) >= _LEAST
        ]  # fmt: skip
        run: list[_Span] = []
        for start, end in _outermost([*self._lists, *paragraphs]):
            items = self._items(start, end) or list(self._lines(start, end))
            if not self._has_amounts(items):
                continue
            if run and start - run[-1][1] > _MAX_LABEL:
                yield run
                run = []
            run += items
        yield run

    def _has_amounts(self, items: Sequence[_Span]) -> bool:
        """Whether most are amounts, two of them with a unit, and they do not state what a serving contains."""
        if len(items) < _LEAST_AMOUNTS or any(end - start > _MAX_ITEM for start, end in items):
            return False
        amounts, measures = (
            sum(one.match(self.text, *item) is not None for item in items) for one in (_AMOUNT, _MEASURE)
        )
        nutrition = sum(_NUTRITION.search(self.text, *item) is not None for item in items)
        return amounts >= _AMOUNTS_SHARE * len(items) and measures >= _LEAST and nutrition < _LEAST

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


def _is_of_nutrition(span: prose.Span) -> bool:
    """A table of what a serving contains; it may be in the box of the ingredients."""
    attributes = span.node.attributes
    marks = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    return span.end - span.start < _SMALL_BOX and "n" in marks.lower() and _NUTRITION_MARKS.search(marks) is not None


def _mark_of_one(node: LexborNode) -> str | None:
    """The mark of one ingredient. `itemprop="ingredients"` is the old name of one, also outside of an item."""
    if (node.attributes.get("itemprop") or "").lower() == "ingredients":
        return "itemprop"
    return next(("-".join(token) for token in _tokens(node) if _is_one(token)), None)


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
