"""Decides which elements of a page are its main content.

In this order: parts that surround the content are left out by their tags, roles and names (`frame.py`); the type of the
page is found (`page_type.py`); the root is the smallest element that holds what remains (`root.py`); within it, parts
that only lead elsewhere are left out (`pruning.py`). If too little remains, names do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from selectolax.lexbor import LexborNode

from curtsy.content.main_content.frame import Frame
from curtsy.content.main_content.groups import groups_of
from curtsy.content.main_content.outline import Outline
from curtsy.content.main_content.page_type import PageType, Signs, has_price, page_type
from curtsy.content.main_content.posts import posts_of, repeated_titles, signatures
from curtsy.content.main_content.pruning import Pruning
from curtsy.content.main_content.root import RootSearch, Sums
from curtsy.content.main_content.title import leads, title_heading

#: a choice with less prose, and less of the letters of the page, has probably missed the content
_ENOUGH_PROSE = 300
_ENOUGH = 0.25
#: letters of a short text
_LEAST_TEXT = 150
#: a page with less text is one that a reader fills in
_LEAST_PAGE = 40
#: letters of a list, and share of links in a menu
_LEAST_LIST = 500
_LEAST_MENU = 0.9
#: labels outside of forms are fields to filter a list, or to choose a product, on other pages
_WITH_FREE_LABELS = frozenset((PageType.ARTICLE, PageType.SERVICE, PageType.DOCUMENTATION))


class Strategy(Enum):
    """How elements are left out; each strategy is tried if the one before leaves too little text."""

    ALL = "all"
    #: the page has little prose: links count as content
    AS_LIST = "as list"
    #: names of classes mislead
    TAGS_ONLY = "tags only"
    #: nothing but a form is left
    WITH_FORMS = "with forms"


_WITH_LISTS = frozenset((Strategy.AS_LIST, Strategy.TAGS_ONLY))


@dataclass(frozen=True, slots=True)
class Choice:
    """The elements of the main content: `roots` without `out`. Numbers refer to the outline's elements."""

    type: PageType
    roots: tuple[int, ...] = ()
    out: frozenset[int] = frozenset()
    #: letters of prose, and all letters, about
    prose: float = 0.0
    letters: float = 0.0
    #: letters of links
    linked: float = 0.0


def choose(page: Outline, root: LexborNode, url: str, title: str | None) -> Choice:
    if not page.elements or not page.text:
        return Choice(PageType.SERVICE)
    heading = title_heading(page, title or "")
    signs = Signs(root, url)
    found = _choose(page, heading, signs, Strategy.ALL)
    for strategy in (Strategy.AS_LIST, Strategy.TAGS_ONLY):
        if found.prose >= _ENOUGH_PROSE or found.letters >= _ENOUGH * page.elements[0].letters:
            break
        if strategy is Strategy.TAGS_ONLY and _is_offer(page, heading, found):
            break
        if signs.is_dated and found.letters - found.linked >= _LEAST_TEXT and _is_chosen(page, heading, found):
            break  # a short entry of a blog beside its archive
        wider = _choose(page, heading, signs, strategy)
        if wider.letters > 2 * found.letters and not _is_menu_added(found, wider, strategy):
            found = wider
    if found.letters < _LEAST_PAGE < page.elements[0].letters:
        found = max(found, _choose(page, heading, signs, Strategy.WITH_FORMS), key=lambda one: one.letters)
    return found


def _is_offer(page: Outline, heading: int | None, found: Choice) -> bool:
    """Whether names were right: little is left of the page of a product, but its title and its price."""
    if found.type is not PageType.PRODUCT or not _is_chosen(page, heading, found):
        return False
    last = page.elements[found.roots[-1]]
    return has_price(page.text[last.start : last.end])


def _is_chosen(page: Outline, heading: int | None, found: Choice) -> bool:
    """Whether the title of the page is in what was found."""
    return heading is not None and any(root <= heading < page.elements[root].stop for root in found.roots)


def _is_menu_added(found: Choice, wider: Choice, strategy: Strategy) -> bool:
    """Whether names were right: what they leave out consists of links, and there is some text or a list without it."""
    if strategy is not Strategy.TAGS_ONLY:
        return False
    plain, more = found.letters - found.linked, wider.letters - wider.linked
    if plain >= _LEAST_TEXT and more < 2 * plain:
        return True
    added = wider.letters - found.letters
    return found.letters >= _LEAST_LIST and wider.linked - found.linked > _LEAST_MENU * added


def _choose(page: Outline, heading: int | None, signs: Signs, strategy: Strategy) -> Choice:
    frame = Frame(page, heading, strategy is not Strategy.TAGS_ONLY, strategy is not Strategy.WITH_FORMS)
    out = frame.out()
    groups = groups_of(page, out)
    posts = posts_of(page, out, signs.is_article)
    rest = page.elements[0].letters - sum(page.elements[number].letters for number in out)
    kind = page_type(page, groups, posts, signs, rest)
    if posts:
        return _thread(page, heading, posts, out | frame.posters())
    if strategy in _WITH_LISTS and kind is not PageType.COLLECTION:
        kind = PageType.LISTING
    if kind in _WITH_FREE_LABELS:
        out -= frame.free_labels()
    if kind is PageType.FORUM:
        out |= frame.posters()
    elif kind is not PageType.PRODUCT:
        out |= frame.comments()
    sums = Sums(page.elements, out, by_prose=strategy not in _WITH_LISTS and kind is not PageType.COLLECTION)
    at = RootSearch(page, sums, out, kind, heading, signs.is_recipe).root()
    pruned = Pruning(page, sums, out, kind, groups, heading, signs.is_board).within(at)
    return Choice(
        type=kind,
        roots=(*_before(page, heading, at, out), at),
        out=frozenset(out | pruned),
        prose=sums.prose[at] - sum(sums.prose[number] for number in pruned),
        letters=sums.letters[at] - sum(sums.letters[number] for number in pruned),
        linked=sums.linked[at] - sum(sums.linked[number] for number in pruned),
    )


def _thread(page: Outline, heading: int | None, posts: list[int], out: set[int]) -> Choice:
    out |= repeated_titles(page, posts, heading)
    signed = signatures(page, posts)
    posts = [post for post in posts if post not in signed] or posts
    out |= signed.difference(posts)
    letters = sum(page.elements[post].letters for post in posts)
    roots = (*_before(page, heading, posts[0], out), *posts)
    return Choice(PageType.FORUM, roots, frozenset(out), prose=letters, letters=letters)


def _before(page: Outline, heading: int | None, root: int, out: set[int]) -> list[int]:
    """Return the title and the summary, if they are before the root."""
    if heading is None or page.elements[heading].stop > root or _is_within(page, heading, out):
        return []
    return [heading, *leads(page.elements, heading, root, out)]


def _is_within(page: Outline, number: int, out: set[int]) -> bool:
    while number >= 0 and number not in out:
        number = page.elements[number].parent
    return number >= 0
