"""What the fetch path needs of a page, read without a tree by the compiled scanner (native/page_scan.c).

The scanner is optional: without a C compiler at installation, or with `CURTSY_READER=tree` in the environment, every
page is read from its tree by `document.py`. So are the pages for which the scanner says that it needs a tree. Both
give the same answers. See docs/decisions/0110-reading-pages-without-a-tree.md.
"""

from __future__ import annotations

import os
import re
from html.entities import html5
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANK = "\t\n\f\r "
_REFERENCE = re.compile(r"&(?:#(?:([0-9]++)|[xX]([0-9A-Fa-f]++));?+|([A-Za-z][A-Za-z0-9]*+;?+))")
_MAX_CODE = 0x10FFFF
#: digits of the largest code point, in decimal; leading zeros are removed before they count
_MAX_DIGITS = 7
#: names that are references without a semicolon too
_BARE = frozenset(name for name in html5 if not name.endswith(";"))
_LONGEST_BARE = max(map(len, _BARE))
#: the standard's table: numbers of windows-1252 where Unicode has control characters
_WINDOWS_1252 = {
    code: bytes((code,)).decode("cp1252") for code in range(0x80, 0xA0) if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}


class Scanned(NamedTuple):
    """What the scanner finds, as written."""

    title: str | None
    #: of the first <base> that has one
    base: str | None
    canonical: str | None
    #: the attribute `lang` of <html>
    language: str | None
    #: the content of each <meta> for robots or for our agent
    robots: list[str]
    #: in document order, each once, without their fragments (`links.without_fragment`)
    links: list[str]


class _Scanner(Protocol):
    def __call__(
        self, html: bytes, agent: bytes, references: Callable[[str, int], str],
        shortened: Callable[[str], str | None], /,
    ) -> tuple[str | None, str | None, str | None, str | None, list[str], list[str]] | str: ...  # fmt: skip


def _load() -> _Scanner | None:
    if os.environ.get("CURTSY_READER", "") == "tree":
        return None
    try:
        from curtsy.content._page_scan import scan as compiled  # missing where no compiler was found
    except ImportError:
        return None
    return compiled


_scan: _Scanner | None = _load()


def reader_name() -> str:
    """`scanner` or `tree`: how the fetch path reads pages in this process."""
    return "tree" if _scan is None else "scanner"


def scan(html: bytes, agent: str) -> Scanned | str:
    """What the page says; or in a word why its tree must be read. `html` is in UTF-8, `agent` in lower case."""
    if _scan is None:
        return "absent"
    if not agent.isascii():
        return "agent"
    found = _scan(html, agent.encode(), references, shortened)
    return found if isinstance(found, str) else Scanned(*found)


def references(text: str, in_attribute: int) -> str:
    """The text with its character references replaced, by the tokenizer's rules for text or for attribute values."""
    return _REFERENCE.sub(_in_attribute if in_attribute else _in_text, text)


def shortened(href: str) -> str | None:
    """A link without the blanks around it and without its fragment; None if it is empty."""
    href = href.strip(_BLANK)
    return without_fragment(href) if href else None


def without_fragment(href: str) -> str:
    """The link without the fragment that its URL loses anyway: a manual links to many parts of a page.

    The URL parser removes white space at the end of a link, but not before a fragment: such a link stays whole.
    """
    cut = href.find("#")
    return href if cut < 0 or (cut and href[cut - 1] <= " ") else href[:cut]


def _in_text(found: re.Match[str]) -> str:
    return _named(found[3]) if found[3] is not None else _numbered(found)


def _in_attribute(found: re.Match[str]) -> str:
    name = found[3]
    if name is None:
        return _numbered(found)
    if name.endswith(";") and name in html5:
        return html5[name]
    for length in range(min(len(name), _LONGEST_BARE), 1, -1):
        if name[:length] in _BARE:
            # "&copy=1" and "&copyx" are parameters of a URL. After the whole name comes no letter or digit.
            following = name[length : length + 1] or found.string[found.end() : found.end() + 1]
            is_parameter = following == "=" or (following.isascii() and following.isalnum())
            return found[0] if is_parameter else html5[name[:length]] + name[length:]
    return found[0]


def _named(name: str) -> str:
    """The longest name that the text begins with counts."""
    if name.endswith(";") and name in html5:
        return html5[name]
    for length in range(min(len(name), _LONGEST_BARE), 1, -1):
        if name[:length] in _BARE:
            return html5[name[:length]] + name[length:]
    return "&" + name


def _numbered(found: re.Match[str]) -> str:
    digits, base = (found[1], 10) if found[1] is not None else (found[2], 16)
    digits = digits.lstrip("0")
    code = int(digits or "0", base) if len(digits) <= _MAX_DIGITS else _MAX_CODE + 1
    if code == 0 or code > _MAX_CODE or 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return _WINDOWS_1252.get(code) or chr(code)
