"""The main heading of a page: the title of its article, and not the name of the site above it.

main    the heading that the page's title repeats, or the only h1
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborNode

from curtsy.content.document import Document
from curtsy.content.text import Span
from curtsy.extract.article_marks import flat

#: characters of a heading that the title must begin with
_LEAST_TITLE = 8
#: characters of an h2 or h3 that the title repeats anywhere: `Canal Post: the lock is closed`
_LEAST_REPEATED = 15


def main(document: Document, text: str, spans: Sequence[Span]) -> Span | None:
    """The first heading that the title begins with or repeats, the higher rank first, or the only h1."""
    found = [one for one in spans if one.node.tag in ("h1", "h2", "h3") and one.end > one.start]
    found.sort(key=lambda one: one.node.tag == "h3")
    firsts = [one for one in found if one.node.tag == "h1"]
    title = flat(document.title or "")
    of_site = _names_of_site(document, text, found, title)
    every = [(one, flat(text[one.start : one.end])) for one in [*firsts, *found] if one not in of_site]
    for one, said in every:
        if title and (said == title or (len(said) >= _LEAST_TITLE and title.startswith(said[:40]))):
            return one
    for one, said in every:
        least = 1 if one.node.tag == "h1" else _LEAST_REPEATED if not of_site else _LEAST_TITLE
        if title and said[:40] in title and len(said) >= least:
            return one
    others = [one for one in firsts if one not in of_site]
    return others[0] if len(others) == 1 else firsts[0] if len(firsts) == 1 and not others else None


def _names_of_site(document: Document, text: str, found: Sequence[Span], title: str) -> list[Span]:
    """Headings that lead to the home page, if another heading is in the title."""
    if _is_home(document.base_url):
        return []
    marked = [one for one in found if _leads_home(one.node, document.base_url)]
    repeated = [one for one in found if one not in marked and flat(text[one.start : one.end])[:40] in title]
    return marked if repeated and title else []


def _is_home(url: str) -> bool:
    parts = urlsplit(url)
    return not parts.query and re.fullmatch(r"/?(?:(?:index|home|default)(?:\.\w{2,5})?)?", parts.path) is not None


def _leads_home(node: LexborNode, url: str) -> bool:
    links = [one for one in (node.parent, *node.css("a[href]")[:2]) if one is not None and one.tag == "a"]
    return any(_is_home_of(one.attributes.get("href") or "", url) for one in links)


def _is_home_of(target: str, url: str) -> bool:
    try:
        whole = urljoin(url, target)
        return bool(target) and urlsplit(whole).hostname == urlsplit(url).hostname and _is_home(whole)
    except ValueError:
        return False
