"""Repeated siblings: the cards of a list, the posts of a thread, the rows of a table of contents."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from curtsy.content.main_content.outline import Element, Outline

_LEAST_ITEMS = 3
_LEAST_LETTERS = 12
_MOST_LETTERS = 2_500
_ITEM_TAGS = frozenset(("div", "li", "article", "section", "tr", "a", "td", "dl", "figure", "span", "h2", "h3", "p"))


class Group(NamedTuple):
    """Siblings of one form, each with a link."""

    parent: int
    items: tuple[int, ...]
    letters: float
    linked: float
    prose: float
    #: items whose heading is a link
    titled: int


def groups_of(page: Outline, out: set[int]) -> list[Group]:
    """Return groups of repeated siblings, outermost first, without those in elements that are left out."""
    found: list[Group] = []
    elements = page.elements
    parents = [number for number, element in enumerate(elements) if len(element.children) >= _LEAST_ITEMS]
    stop = 0
    for number in page.outside(parents, out):
        element = elements[number]
        if number >= stop and (element.links >= _LEAST_ITEMS or element.tag == "a"):
            group = _group(elements, number, out)
            if group is not None:
                found.append(group)
                stop = element.stop
    return found


def _group(elements: list[Element], parent: int, out: set[int]) -> Group | None:
    element = elements[parent]
    forms = [_form(elements[child]) for child in element.children]
    times = Counter(forms)
    del times[None]
    if not times:
        return None
    form, most = times.most_common(1)[0]
    if most < _LEAST_ITEMS:
        return None
    items = [child for child, one in zip(element.children, forms, strict=True) if one == form and child not in out]
    full = [elements[item] for item in items if _is_item(elements[item])]
    if len(full) < max(_LEAST_ITEMS, 0.6 * len(items)):
        return None
    letters = sum(item.letters for item in full)
    if letters < 0.5 * element.letters:
        return None
    linked, prose = sum(item.linked for item in full), sum(item.prose for item in full)
    titled = sum(1 for item in items if _has_linked_heading(elements, item))
    return Group(parent, tuple(items), letters, linked, prose, titled)


_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5"))
_SEEN = 40


def _has_linked_heading(elements: list[Element], item: int) -> bool:
    """Whether a heading among the first elements of an item is a link, or is in one."""
    if not elements[item].headings:
        return False
    for number in range(item, min(elements[item].stop, item + _SEEN)):
        element = elements[number]
        if element.tag in _HEADINGS:
            return element.links > 0 or elements[element.parent].tag == "a" or elements[item].tag == "a"
    return False


def _form(element: Element) -> tuple[str, str] | None:
    if element.tag not in _ITEM_TAGS:
        return None
    return element.tag, (element.attributes.get("class") or "").partition(" ")[0][:40]


def _is_item(element: Element) -> bool:
    return element.links > 0 and _LEAST_LETTERS <= element.letters <= _MOST_LETTERS
