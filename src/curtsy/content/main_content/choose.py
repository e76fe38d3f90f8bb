"""Decides which elements of a page are its main content.

In this order: parts that surround the content are left out by their tags, roles and names (`frame.py`); the type of the
page is found (`page_type.py`); the root is the smallest element that holds what remains (`root.py`); within it, parts
that only lead elsewhere are left out (`pruning.py`). If too little remains, names do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from curtsy.content.main_content.frame import Frame
from curtsy.content.main_content.groups import groups_of
from curtsy.content.main_content.outline import Outline
from curtsy.content.main_content.page_type import PageType, Signs, page_type
from curtsy.content.main_content.posts import posts_of, repeated_titles
from curtsy.content.main_content.pruning import Pruning
from curtsy.content.main_content.root import RootSearch, Sums
from curtsy.content.main_content.title import leads, title_heading


@dataclass(frozen=True, slots=True)
class Choice:
    """The elements of the main content: `roots` without `out`. Numbers refer to the outline's elements."""

    type: PageType
    roots: tuple[int, ...] = ()
    out: frozenset[int] = frozenset()


def choose(page: Outline, root: LexborNode, url: str, title: str | None) -> Choice:
    if not page.elements or not page.text:
        return Choice(PageType.SERVICE)
    heading = title_heading(page, title or "")
    frame = Frame(page, heading)
    out = frame.out()
    signs = Signs(root, url)
    groups = groups_of(page, out)
    posts = posts_of(page, out, signs.is_article)
    kind = page_type(page, groups, posts, signs)
    if posts:
        out |= frame.posters() | repeated_titles(page, posts, heading)
        return Choice(kind, (*_before(page, heading, posts[0], out), *posts), frozenset(out))
    out |= frame.posters() if kind is PageType.FORUM else frame.comments()
    sums = Sums(page.elements, out)
    at = RootSearch(page, sums, out, kind, heading).root()
    pruned = Pruning(page, sums, out, kind, groups, heading).within(at)
    return Choice(kind, (*_before(page, heading, at, out), at), frozenset(out | pruned))


def _before(page: Outline, heading: int | None, root: int, out: set[int]) -> list[int]:
    """Return the title and the summary, if they are before the root."""
    if heading is None or page.elements[heading].last > root or _is_within(page, heading, out):
        return []
    return [heading, *leads(page.elements, heading, root, out)]


def _is_within(page: Outline, number: int, out: set[int]) -> bool:
    while number >= 0 and number not in out:
        number = page.elements[number].parent
    return number >= 0
