"""What the names of an element say about its part of the page: words of its class and id.

`names.toml` has the words that content management systems, shops, forums and site builders use for the same parts
everywhere. A name alone never removes much of a page: `frame.py` compares it with the text of the element.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

#: characters of names that are read
_MAX_NAMES = 400
#: elements of a site have the same names on every page
_REMEMBERED = 16_384


class Part(Enum):
    """What an element's names say."""

    UNKNOWN = "unknown"
    #: the content itself: `article-body`, `entry-content`
    CONTENT = "content"
    #: menus, headers and footers of the site, notices, share bars, advertisements, forms
    FRAME = "frame"
    #: other pages of the site: `related`, `most-read`
    RELATED = "related"
    SIDEBAR = "sidebar"
    #: what readers wrote about an article
    COMMENTS = "comments"
    #: date, author, tags of an article
    META = "meta"


_LISTS: dict[str, str] = tomllib.loads((Path(__file__).parent / "names.toml").read_text("utf-8"))
#: types of schema.org for parts of a page
_DECLARED = {
    "sitenavigationelement": "navigation",
    "wpheader": "site-header",
    "wpfooter": "site-footer",
    "wpsidebar": "sidebar",
    "wpadblock": "ad",
    "breadcrumb": "breadcrumb",
    "breadcrumblist": "breadcrumb",
}
#: what a word begins or ends at
_EDGE = re.compile(r"[\s\d-]+")


class _Read(NamedTuple):
    """Names in lower case with hyphens between their words, and what is between edges of words."""

    text: str
    pieces: frozenset[str]


class _Words(NamedTuple):
    """Words of names, each of one or more pieces."""

    pattern: re.Pattern[str]
    #: their first pieces; most names have none of them, which a set says faster than a search
    first: frozenset[str]

    @classmethod
    def of(cls, words: str, before: str = r"\s-", after: str = r"[\s\d-]") -> _Words:
        """`before` and `after`: what may be beside a word."""
        found = sorted(words.split(), key=len, reverse=True)
        pattern = re.compile(rf"(?:^|[{before}])(?:{'|'.join(map(re.escape, found))})(?=$|{after})")
        return cls(pattern, frozenset(_EDGE.split(word)[0] for word in found))

    def are_in(self, names: _Read) -> bool:
        return not self.first.isdisjoint(names.pieces) and self.pattern.search(names.text) is not None


#: in the order of precedence
_PARTS = {
    part: _Words.of(_LISTS[part.value] + (_LISTS["controls"] + _LISTS["consent"] if part is Part.FRAME else ""))
    for part in (Part.RELATED, Part.COMMENTS, Part.FRAME, Part.SIDEBAR, Part.META, Part.CONTENT)
}
_NO_CONTROL = _Words.of(_LISTS["frame"] + _LISTS["consent"])
_CONSENT = _Words.of(_LISTS["consent"])
_POSTER = _Words.of(_LISTS["poster"])
_LEAD = _Words.of(_LISTS["lead"])
_POST = _Words.of(_LISTS["post"], before=r"\s", after=r"[\s\d]|-\d")
_COMMENT_TEXT = _Words.of(_LISTS["comment_text"])
_FOOTER = _Words.of("footer copyright colophon legal disclaimer")
_PATH = _Words.of("breadcrumb breadcrumbs crumbs bread-crumb bread-crumbs breadcrumbtrail fil-ariane migas-de-pan")
_BUTTON = _Words.of("btn btns button buttons cta add-to-cart buy-now knopka cart basket")
#: WordPress uses it for the boxes of sidebars; `elementor-widget` and the widgets of `so-panel` may be anything
_WIDGET = re.compile(r"(?:^|\s)widget(?:-[a-z]|\s|$)")
_BUILT_WIDGET = re.compile(r"(?:^|\s)so-panel(?:\s|$)")
#: `leftnav`, `rfooter`, `sidebarcol`
_COMPOUND = re.compile(
    r"(?:^|[\s-])(?:[a-z]{1,12}(?:footer|sidebar|navi?|breadcrumbs?|menu)|(?:footer|sidebar|breadcrumbs?)[a-z]{1,12}"
    r"|toc(?:frame|menu|bar|box|nav))(?=$|[\s\d-])"
)
_HEADER = re.compile(
    r"(?:^|\s)(?:[a-z]{0,8}-?header|head|top|banner|kopf|entete|cabecera|shapka)(?:-?(?:wrap|wrapper|container|inner|top|main|area|bar))?(?=$|\s)"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SEPARATOR = re.compile(r"[_:./-]+")
#: `no-sidebar`, `has-sidebar`, `node-no-sidebar` and `sidebar-layout` describe the page around the element; an `ad`
#: with details is an entry of classified advertisements; results of a search are what a page lists. Each has a hyphen
_ABOUT_PAGE = re.compile(
    r"(?:^|[\s-])(?:no|not|has|with|without|hide|show)-\S*|(?:text|bg|border|badge|link)-secondary"
    r"|(?:^|(?<=[\s-]))side-?bar-layout"
    r"|(?:^|(?<=[\s-]))ads?-(?=(?:details?|titles?|desc|description|prices?|contents?|infos?|lists?|listing|subject|view)(?:$|[\s-]))"
    r"|(?:^|(?<=[\s-]))(?:list|listings?|classifieds?)-ads?(?=$|[\s-])"
    r"|(?:^|(?<=[\s-]))search-(?:results?|hits?|entry|entries)(?=$|[\s\d-])"
)


@lru_cache(_REMEMBERED)
def part_of(names: str) -> Part:
    """Return what the names of an element say about it.

    >>> part_of("site-footer"), part_of("ArticleBody_root__x1"), part_of("col-md-8")
    (<Part.FRAME: 'frame'>, <Part.CONTENT: 'content'>, <Part.UNKNOWN: 'unknown'>)
    >>> part_of("widget widget_text"), part_of("so-panel widget widget_text")
    (<Part.SIDEBAR: 'sidebar'>, <Part.UNKNOWN: 'unknown'>)
    """
    read = _read(names)
    for part, words in _PARTS.items():
        if words.are_in(read):
            return part
    if _COMPOUND.search(read.text) is not None:
        return Part.FRAME
    is_sidebar = _WIDGET.search(read.text) is not None and _BUILT_WIDGET.search(read.text) is None
    return Part.SIDEBAR if is_sidebar else Part.UNKNOWN


def of_type(itemtype: str) -> str:
    """Return the name of a part of a page that its microdata declare.

    >>> of_type("https://schema.org/WPSideBar"), of_type("https://schema.org/Product")
    ('sidebar', '')
    """
    return _DECLARED.get(itemtype.rstrip("/ ").rpartition("/")[2].lower(), "")


def is_by_id(attributes: Mapping[str, str | None]) -> bool:
    """Return whether only the id of an element says something about it."""
    return part_of(f"{attributes.get('class') or ''} ") is Part.UNKNOWN


@lru_cache(_REMEMBERED)
def is_header(names: str) -> bool:
    """Return whether the names may be those of the header of the site."""
    return _HEADER.search(_read(names).text) is not None


def is_footer(names: str) -> bool:
    return _FOOTER.are_in(_read(names))


@lru_cache(_REMEMBERED)
def is_button(names: str) -> bool:
    return _BUTTON.are_in(_read(names))


def is_path(names: str) -> bool:
    """Return whether the names are those of the path to the page from the home page."""
    return _PATH.are_in(_read(names))


@lru_cache(_REMEMBERED)
def is_poster(names: str) -> bool:
    """Return whether an element describes the author of a forum post, or has the buttons of a post."""
    return _POSTER.are_in(_read(names))


@lru_cache(_REMEMBERED)
def is_content(names: str) -> bool:
    """Return whether the names are those of content, whatever else they say."""
    return _PARTS[Part.CONTENT].are_in(_read(names))


@lru_cache(_REMEMBERED)
def is_control(names: str) -> bool:
    """Return whether an element of the frame has the names of a menu, a search or a filter, and no others."""
    return not _NO_CONTROL.are_in(_read(names))


@lru_cache(_REMEMBERED)
def is_consent(names: str) -> bool:
    """Return whether the names are those of a notice or a dialog about cookies."""
    return _CONSENT.are_in(_read(names))


@lru_cache(_REMEMBERED)
def is_post(names: str) -> bool:
    """Return whether the names are those of the text of a forum post; blogs call articles so too, and say more."""
    return _POST.are_in(_read(names)) and "entry" not in names and "item-control" not in names


@lru_cache(_REMEMBERED)
def is_comment(names: str) -> bool:
    """Return whether the names are those of a comment or of its text."""
    return _COMMENT_TEXT.are_in(_read(names))


@lru_cache(_REMEMBERED)
def is_lead(names: str) -> bool:
    """Return whether the names are those of the text between the title and the text of an article."""
    return _LEAD.are_in(_read(names))


@lru_cache(_REMEMBERED)
def _read(names: str) -> _Read:
    text = names[:_MAX_NAMES]
    if not text.islower():
        text = _CAMEL.sub("-", text)
    text = _SEPARATOR.sub("-", text).lower()
    if "-" in text:
        text = _ABOUT_PAGE.sub(" ", text)
    return _Read(text, frozenset(_EDGE.split(text)))
