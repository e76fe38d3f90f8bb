"""What the pages of a site call its documents: the texts of links to them.

The name of a file often says nothing (`x18.pdf`), and many documents have no title. The link says what it is.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from selectolax.lexbor import LexborNode

from curtsy.content.document import Document
from curtsy.content.text import text
from curtsy.rules.urls import normalise

#: characters of a label; a longer block is a paragraph or a whole list
_MAX_LABEL = 150
#: elements above a link that may be the entry of a list of documents
_MOST_ABOVE = 4
_ENTRIES = frozenset(("li", "tr", "p", "div", "dd", "article", "section"))
#: separates the parts of a label, as in titles of pages
_SEPARATOR = " | "


def labels_of(pages: Iterable[Document], wanted: Container[str]) -> dict[str, str]:
    """Return the labels of these documents, by URL. The first page that links to a document names it.

    A label has up to three parts: the text of the link, its title, and the entry that the link is in, because many
    links only say `Download`.
    """
    found: dict[str, str] = {}
    for page in pages:
        for node, tag, attributes in zip(page.nodes, page.tags, page.attributes, strict=True):
            href = attributes.get("href") if tag == "a" else None
            url = None if not href else normalise(href, page.base_url)
            if url is not None and url not in found and url in wanted and (label := _label(node, attributes)):
                found[url] = label
    return found


def _label(node: LexborNode, attributes: dict[str, str | None]) -> str:
    said = (_short(node), attributes.get("title"), attributes.get("aria-label"), _entry(node))
    parts = (" ".join((part or "").split())[:_MAX_LABEL] for part in said)
    return _SEPARATOR.join(dict.fromkeys(part for part in parts if part))


def _short(node: LexborNode) -> str:
    found = text(node, limit=2 * _MAX_LABEL)
    return found if len(found) <= _MAX_LABEL else ""


def _entry(link: LexborNode) -> str:
    """Return the text of the smallest block around a link that says more than the link, on one line per part."""
    own = _short(link)
    above = link.parent
    for _ in range(_MOST_ABOVE):
        if above is None or above.tag == "body":
            return ""
        if above.tag in _ENTRIES and (said := _short(above)) != own:
            return said.replace("\n", _SEPARATOR).replace("\t", _SEPARATOR)
        above = above.parent
    return ""
