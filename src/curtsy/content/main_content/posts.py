"""The posts of a forum thread: its questions, answers and messages."""

from __future__ import annotations

from collections.abc import Callable

from curtsy.content.main_content import names
from curtsy.content.main_content.outline import Outline

_LEAST_POSTS = 2
#: above a signature
_RULE = "_" * 10
_LEAST_COMMENTS = 3
#: of the page's prose
_LEAST_SHARE = 0.1
#: letters of other prose, on a page that consists of comments
_MOST_OTHER = 600
_TAGS = frozenset(
    ("div", "td", "article", "section", "blockquote", "li", "p", "span", "dd", "table", "tr", "shreddit-comment")
)


def posts_of(page: Outline, out: set[int], is_article: bool) -> list[int]:
    """Return the texts of posts, in order; empty: the page is no thread."""
    posts = _innermost(page, out, names.is_post)
    if len(posts) >= _LEAST_POSTS and _hold_text(page, posts):
        return posts
    comments = [] if is_article else _innermost(page, out, names.is_comment)
    prose = sum(page.elements[number].prose for number in comments)
    other = page.elements[0].prose - prose
    letters = sum(page.elements[number].letters for number in comments)
    is_all = other < min(_MOST_OTHER, prose) and letters > 0.3 * page.elements[0].letters
    if len(comments) >= _LEAST_COMMENTS and is_all:
        return comments
    return []


def _hold_text(page: Outline, posts: list[int]) -> bool:
    """Whether posts hold a part of the page's prose: buttons and counters of posts have names like theirs."""
    held = sum(page.elements[number].prose for number in posts)
    return held >= _LEAST_SHARE * page.elements[0].prose


def _innermost(page: Outline, out: set[int], is_wanted: Callable[[str], bool]) -> list[int]:
    """Return the named elements that contain no other such element."""
    elements = page.elements
    found: list[int] = []
    for number in page.outside(page.named(is_wanted), out):
        element = elements[number]
        if element.letters > 0 and element.tag in _TAGS and len(element.names) > 3:
            while found and elements[found[-1]].stop >= element.stop:
                found.pop()
            found.append(number)
    return found


def signatures(page: Outline, posts: list[int]) -> set[int]:
    """Return what is below a long line of underscores in a post, or is a post of its own."""
    found: set[int] = set()
    for post in posts:
        element = page.elements[post]
        if page.text.find(_RULE, element.start, element.end) >= 0:
            found.update(
                number
                for number in range(post, element.stop)
                if page.text.startswith(_RULE, page.elements[number].start)
                and page.elements[number].end > page.elements[number].start + len(_RULE)
            )
    return found


def repeated_titles(page: Outline, posts: list[int], title: int | None) -> set[int]:
    """Return the headings of posts that only repeat the title: `Re: How do I open the box?`."""
    if title is None:
        return set()
    said = page.text[page.elements[title].start : page.elements[title].end].strip()
    return {
        number
        for post in posts
        for number in range(post, page.elements[post].stop)
        if page.elements[number].tag in _HEADINGS
        and page.text[page.elements[number].start : page.elements[number].end].endswith(said)
    }


_HEADINGS = frozenset(("h2", "h3", "h4", "h5"))
