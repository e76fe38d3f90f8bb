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


_WORDS: dict[str, str] = tomllib.loads((Path(__file__).parent / "names.toml").read_text("utf-8"))


def _pattern(*lists: str, begins_name: bool = False) -> re.Pattern[str]:
    words = sorted((re.escape(word) for name in lists for word in _WORDS[name].split()), key=len, reverse=True)
    return re.compile(rf"(?:^|[\s{'' if begins_name else '-'}])(?:{'|'.join(words)})(?=$|[\s\d-])")


#: in the order of precedence
_PARTS = {
    part: _pattern(part.value, *(("controls",) if part is Part.FRAME else ()))
    for part in (Part.RELATED, Part.COMMENTS, Part.FRAME, Part.SIDEBAR, Part.META, Part.CONTENT)
}
_NO_CONTROL = _pattern("frame")
_POSTER = _pattern("poster")
_LEAD = _pattern("lead")
_POST = _pattern("post", begins_name=True)
_COMMENT_TEXT = _pattern("comment_text")
#: WordPress uses it for the boxes of sidebars; `elementor-widget` may be anything
_WIDGET = re.compile(r"(?:^|\s)widget(?:-[a-z]|\s|$)")
#: `leftnav`, `rfooter`, `sidebarcol`
_COMPOUND = re.compile(
    r"(?:^|[\s-])(?:[a-z]{1,12}(?:footer|sidebar|navi?|breadcrumbs?|menu)|(?:footer|sidebar|breadcrumbs?)[a-z]{1,12}"
    r"|toc(?:frame|menu|bar|box|nav))(?=$|[\s\d-])"
)
_HEADER = re.compile(
    r"(?:^|\s)(?:[a-z]{0,8}-?header|head|top|banner|kopf|entete|cabecera|shapka)(?:-?(?:wrap|wrapper|container|inner|top|main|area|bar))?(?=$|\s)"
)
_FOOTER = re.compile(r"(?:^|[\s-])(?:footer|copyright|colophon|legal|disclaimer)(?=$|[\s\d-])")
_BUTTON = re.compile(r"(?:^|[\s-])(?:btn|btns|button|buttons|cta|add-to-cart|buy-now|knopka|cart|basket)(?=$|[\s\d-])")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SEPARATOR = re.compile(r"[_:./-]+")
#: `no-sidebar`, `has-sidebar` and `node-no-sidebar` describe the page around the element; an `ad` with details is an
#: entry of classified advertisements
_ABOUT_PAGE = re.compile(
    r"(?:^|[\s-])(?:no|not|has|with|without|hide|show)-\S*|(?:text|bg|border|badge|link)-secondary"
    r"|(?:^|(?<=[\s-]))ads?-(?=(?:details?|titles?|desc|description|prices?|contents?|infos?|lists?|listing|subject|view)(?:$|[\s-]))"
    r"|(?:^|(?<=[\s-]))(?:list|listings?|classifieds?)-ads?(?=$|[\s-])"
)


@lru_cache(_REMEMBERED)
def part_of(names: str) -> Part:
    """Return what the names of an element say about it.

    >>> part_of("site-footer"), part_of("ArticleBody_root__x1"), part_of("col-md-8")
    (<Part.FRAME: 'frame'>, <Part.CONTENT: 'content'>, <Part.UNKNOWN: 'unknown'>)
    """
    read = _readable(names)
    for part, pattern in _PARTS.items():
        if pattern.search(read) is not None:
            return part
    if _COMPOUND.search(read) is not None:
        return Part.FRAME
    return Part.SIDEBAR if _WIDGET.search(read) is not None else Part.UNKNOWN


def is_by_id(attributes: Mapping[str, str | None]) -> bool:
    """Return whether only the id of an element says something about it."""
    return part_of(f"{attributes.get('class') or ''} ") is Part.UNKNOWN


@lru_cache(_REMEMBERED)
def is_header(names: str) -> bool:
    """Return whether the names may be those of the header of the site."""
    return _HEADER.search(_readable(names)) is not None


def is_footer(names: str) -> bool:
    return _FOOTER.search(_readable(names)) is not None


@lru_cache(_REMEMBERED)
def is_button(names: str) -> bool:
    return _BUTTON.search(_readable(names)) is not None


@lru_cache(_REMEMBERED)
def is_poster(names: str) -> bool:
    """Return whether an element describes the author of a forum post, or has the buttons of a post."""
    return _POSTER.search(_readable(names)) is not None


@lru_cache(_REMEMBERED)
def is_content(names: str) -> bool:
    """Return whether the names are those of content, whatever else they say."""
    return _PARTS[Part.CONTENT].search(_readable(names)) is not None


@lru_cache(_REMEMBERED)
def is_control(names: str) -> bool:
    """Return whether an element of the frame has the names of a menu, a search or a filter, and no others."""
    return _NO_CONTROL.search(_readable(names)) is None


@lru_cache(_REMEMBERED)
def is_post(names: str) -> bool:
    """Return whether the names are those of the text of a forum post; blogs call articles so too, and say more."""
    return _POST.search(_readable(names)) is not None and "entry" not in names


@lru_cache(_REMEMBERED)
def is_comment(names: str) -> bool:
    """Return whether the names are those of a comment or of its text."""
    return _COMMENT_TEXT.search(_readable(names)) is not None


@lru_cache(_REMEMBERED)
def is_lead(names: str) -> bool:
    """Return whether the names are those of the text between the title and the text of an article."""
    return _LEAD.search(_readable(names)) is not None


def _readable(names: str) -> str:
    """Return lower-case words with hyphens between them."""
    return _ABOUT_PAGE.sub(" ", _SEPARATOR.sub("-", _CAMEL.sub("-", names[:_MAX_NAMES])).lower())
