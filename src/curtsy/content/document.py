"""A page: its encoding, title, base, robots rules, canonical, language, refresh; its text, Markdown and data.

`Document.parse` makes one lexbor pass and one selector pass; everything costlier runs on first use. No I/O;
bad content never raises.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from selectolax.lexbor import LexborCSSSelector, LexborHTMLParser, LexborNode

from curtsy.content import structured
from curtsy.content import text as prose
from curtsy.content.charset import charset_of
from curtsy.content.head import as_utf8, base_url_of, is_at_once, language_of, refresh_target, robots_words, title_of
from curtsy.content.main_content import MainContent, PageType, main_content, outline
from curtsy.content.markdown import markdown
from curtsy.content.parser_limits import tame
from curtsy.content.streamed import placements_of
from curtsy.content.text import VisibleText
from curtsy.content.visibility import judge
from curtsy.content.walk import PageTree, walk
from curtsy.core.text_layout import Label, Visibility
from curtsy.rules.urls import normalise, parse

# What links and head data are read from. [href] covers a, area, link and base.
_QUERY = "[href],meta,title,iframe,frame"

_local = threading.local()


def _select(root: LexborNode) -> list[LexborNode]:
    # A selector engine costs a third of a parse to make, so each thread keeps one (it may not be shared).
    try:
        selector = _local.selector
    except AttributeError:
        selector = _local.selector = LexborCSSSelector()  # type: ignore[no-untyped-call]
    found: list[LexborNode] = selector.find(_QUERY, root)
    return found


@dataclass(slots=True)
class Document:
    """A parsed page. Treat it as read-only."""

    url: str
    #: a codec name that Python knows
    charset: str
    #: what links are relative to: the first usable <base href>, else the URL
    base_url: str
    title: str | None
    #: by <meta name="robots"> or one that names our agent
    robots_noindex: bool
    robots_nofollow: bool
    #: normalized
    canonical: str | None
    language: str | None
    #: where <meta http-equiv="refresh"> leads, normalized
    refresh: str | None
    #: the refresh is immediate and applies to all visitors, not only to those without scripts
    leads_on: bool
    #: elements that may carry links, in document order
    nodes: list[LexborNode]
    #: their tags
    tags: list[str | None]
    tree: LexborHTMLParser
    #: parts of the page are missing: it exceeds the limits of parser_limits.py
    truncated: bool = False
    _attributes: list[dict[str, str | None]] | None = field(default=None, init=False, repr=False, compare=False)
    _page_tree: PageTree | None = field(default=None, init=False, repr=False, compare=False)
    _visible: VisibleText | None = field(default=None, init=False, repr=False, compare=False)
    _main: MainContent | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def parse(cls, body: bytes, content_type: str | None, url: str, agent: str = "curtsy") -> Document:
        """Never raises, whatever the bytes."""
        charset = charset_of(body, content_type, url=url)
        html, truncated = tame(as_utf8(body, charset))
        tree = LexborHTMLParser(html)
        root = tree.root
        nodes = [] if root is None else _select(root)
        tags = [node.tag for node in nodes]
        head = _Head(agent)
        for node, tag in zip(nodes, tags, strict=True):
            if tag != "a":
                head.read(tag, node, node.attributes)
        base_url = base_url_of(head.base, url)
        refresh = None if head.refresh is None else normalise(head.refresh, base_url)
        return cls(
            url=url,
            charset=charset,
            base_url=base_url,
            title=head.title,
            robots_noindex=head.noindex,
            robots_nofollow=head.nofollow,
            canonical=None if head.canonical is None else normalise(head.canonical, base_url),
            language=None if root is None else language_of(root.attributes.get("lang")),
            refresh=refresh,
            leads_on=head.leads_on and refresh is not None,
            nodes=nodes,
            tags=tags,
            tree=tree,
            truncated=truncated,
        )

    @property
    def attributes(self) -> list[dict[str, str | None]]:
        """The attributes of the nodes."""
        if self._attributes is None:
            self._attributes = [node.attributes for node in self.nodes]
        return self._attributes

    def page_tree(self) -> PageTree:
        """Return the tree with the visibility of its elements, and where streamed content belongs."""
        if self._page_tree is None:
            root = self.tree.root
            self._page_tree = PageTree(None) if root is None else page_tree(root)
        return self._page_tree

    def visible(self) -> VisibleText:
        """Return what a reader can read, with its layout."""
        if self._visible is None:
            self._visible = prose.read(self.page_tree())
        return self._visible

    def text(self) -> str:
        """Return what a reader can read: one line per block, no scripts, styles, templates or hidden parts."""
        return self.visible().text

    def visibility_at(self, start: int, end: int) -> Visibility:
        """Return the visibility of a span of the text."""
        return self.visible().layout.visibility_at(start, end)

    def labels_at(self, start: int, end: int) -> tuple[Label, ...]:
        """Return the row labels, column labels or terms of a span of the text."""
        return self.visible().layout.labels_at(start, end)

    def markdown(self) -> str:
        """The whole page as Markdown: headings, paragraphs, lists, links, emphasis, code, tables, quotations."""
        return markdown([walk(self.page_tree())], self._absolute)

    def main_content(self) -> MainContent:
        """Return what the page is about, without menus, footers, notices and links to other pages."""
        if self._main is None:
            page = outline(self.page_tree())
            if self._visible is None:
                self._visible = page.visible._replace(spans=[])
            self._main = main_content(self.page_tree(), page, self.url, self.title)
        return self._main

    def main_text(self) -> str:
        """Return the main content as text. Each piece is a part of `text()`: `main_content().pieces` says which."""
        return self.main_content().text

    def main_markdown(self) -> str:
        """Return the main content as Markdown, in the form of `markdown()`."""
        return markdown(self.main_content().walks(), self._absolute)

    def _absolute(self, href: str) -> str | None:
        return parse(href, self.base_url)

    def page_type(self) -> PageType:
        """Return what kind of page it is, as far as its structure says."""
        return self.main_content().type

    def structured(self) -> list[dict[str, Any]]:
        """[{"kind": ..., "data": ...}, ...]; the kinds in this order: json-ld, opengraph, twitter, dublin-core, meta,
        microdata, rdfa, microformats.
        """
        root = self.tree.root
        return (
            []
            if root is None
            else structured.read(root, (node for node in self.nodes if node.tag == "meta"), self.base_url)
        )


def page_tree(root: LexborNode) -> PageTree:
    """Return a tree with the visibility of its elements, and where streamed content belongs."""
    judged = judge(root)
    return PageTree(root, judged.states, placements_of(root) if judged.may_be_streamed else {})


class _Head:
    """Gathers what the elements other than links say about the page; the first of each kind counts."""

    __slots__ = ("agents", "base", "canonical", "leads_on", "nofollow", "noindex", "refresh", "title")

    def __init__(self, agent: str) -> None:
        self.agents = ("robots", agent.lower())
        self.base: str | None = None
        self.canonical: str | None = None
        self.refresh: str | None = None
        self.title: str | None = None
        self.noindex = self.nofollow = self.leads_on = False

    def read(self, tag: str | None, node: LexborNode, attributes: dict[str, str | None]) -> None:
        if tag == "meta":
            self._meta(node, attributes)
        elif tag == "link":
            if self.canonical is None and "canonical" in (attributes.get("rel") or "").lower().split():
                self.canonical = attributes.get("href")
        elif tag == "title":
            if self.title is None and not _in_svg(node):
                self.title = title_of(node.text())
        elif tag == "base" and self.base is None:
            self.base = attributes.get("href") or ""

    def _meta(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        name = attributes.get("name")
        if name is not None and name.strip().lower() in self.agents:
            words = robots_words(attributes.get("content") or "")
            self.noindex = self.noindex or "noindex" in words or "none" in words
            self.nofollow = self.nofollow or "nofollow" in words or "none" in words
        elif (target := refresh_target(attributes)) is not None:
            self.refresh = self.refresh or target
            self.leads_on = self.leads_on or (is_at_once(attributes) and not _in_noscript(node))


def _in_svg(node: LexborNode) -> bool:
    parent = node.parent
    return parent is not None and parent.tag in ("svg", "g", "symbol", "defs")


def _in_noscript(node: LexborNode) -> bool:
    above = node.parent
    while above is not None and above.tag != "noscript":
        above = above.parent
    return above is not None
