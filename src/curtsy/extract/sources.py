"""A page as the sources of claims use it: its text, its structured data as a JSON document, its elements."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from curtsy.content import text as prose
from curtsy.content.charset import charset_of, decode, media_type
from curtsy.content.document import Document
from curtsy.content.documents.layout import FileLayout
from curtsy.content.documents.model import FileText
from curtsy.content.head import is_html
from curtsy.content.structured import tidy
from curtsy.core.claims import PageContext, Source, SourceKind
from curtsy.core.text_layout import EMPTY_LAYOUT, TextLayout
from curtsy.extract import foreign_parts, own_parts, speakers
from curtsy.extract.article_page import ArticlePage
from curtsy.extract.page_context import HtmlContext
from curtsy.extract.page_selection import roles_of
from curtsy.grounding import attribution

#: characters of a text that is not HTML: some 400 pages of a report
MAX_TEXT = 1_000_000
_PARAGRAPHS = frozenset(("p", "li", "address", "dd", "td"))
_NOT_BREAK = re.compile(r"[^\n]")


@dataclass(frozen=True)
class PageSources:
    """One page. The JSON pointers of structured sources refer to `data`."""

    page: str
    url: str
    title: str | None
    #: the visible text
    text: Source
    #: [{"kind": ..., "data": ...}, ...], bounded
    data: list[dict[str, Any]]
    #: None: the page is not HTML
    document: Document | None
    #: the page's roles, by its URL and title
    roles: frozenset[str]
    #: `pdf`, `docx`, ...; None: the page is no document
    file_kind: str | None = None
    #: heading, bylines and dates, read once on first use; None: the page is not HTML
    article: ArticlePage | None = None

    @cached_property
    def structured(self) -> Source:
        """`data` as JSON text."""
        dumped = json.dumps(self.data, ensure_ascii=False)
        return Source(SourceKind.STRUCTURED, self.page, self.url, dumped)

    def is_of_others(self, start: int, end: int) -> bool:
        """Return whether a span of the text is in a testimonial, a case study or another part that is about others."""
        return self.text.is_foreign(start, end)

    def is_headed_by_others(self, start: int, end: int) -> bool:
        """Return whether a span of the text is below a heading such as `Hosting` or `Press contact`."""
        return self.text.is_foreign(start, end, by_heading=True)

    def is_below_another(self, start: int) -> bool:
        """Return whether a place of the text is below a heading that names another thing: `Where to stay`."""
        return start in self._unclear

    def is_of_head_office(self, start: int) -> bool:
        """Return whether a place of the text is below a heading such as `Head office`."""
        return start in self._head_office

    def is_of_branch(self, start: int) -> bool:
        """Return whether a place of the text is below a heading such as `Truro branch`."""
        return start in self._branches and start not in self._head_office

    @cached_property
    def _head_office(self) -> foreign_parts.Spans:
        marked = [*self._offices, *own_parts.offices(self.text.text)]
        return foreign_parts.Spans((start, end) for text, start, end in marked if own_parts.is_head_office(text))

    @cached_property
    def _branches(self) -> foreign_parts.Spans:
        marked = [*self._offices, *own_parts.offices(self.text.text)]
        return foreign_parts.Spans((start, end) for text, start, end in marked if own_parts.is_branch(text))

    @cached_property
    def _offices(self) -> list[tuple[str, int, int]]:
        return [] if self.document is None else foreign_parts.sections(self.document, with_main=True)

    def is_heading(self, text: str) -> bool:
        """Return whether a line is a heading that does not name another thing."""
        own = own_parts.site_label(self.url)
        said = " ".join(text.split())
        return any(
            " ".join(heading.split()) == said and (is_main or own_parts.is_neutral(heading, own))
            for heading, is_main in self._headings
        )

    @cached_property
    def _headings(self) -> list[tuple[str, bool]]:
        main = {start for _, start, _ in self._offices} - {start for _, start, _ in self._sections}
        return [(text, start in main) for text, start, _ in self._offices]

    def is_announced_by_others(self, start: int) -> bool:
        """Return whether a heading or the line before says that others follow: `What others do`."""
        lead = own_parts.lead_in(self.text.text, self.text.text.rfind("\n", 0, start) + 1)
        return start in self._others or own_parts.announces_others(lead) or attribution.is_other_name(lead, ())

    def is_said_by_another(self, start: int) -> bool:
        """Return whether a `we` at a place of the text is of another: below its name, or in an interview."""
        if start in self._speakers:
            return True
        if any(self._is_name(label.text) for label in self.text.layout.labels_at(start, start + 1)):
            return True
        text = self.text.text
        line = text.rfind("\n", 0, start) + 1
        above = text[text.rfind("\n", 0, max(line - 1, 0)) + 1 : max(line - 1, 0)]
        return speakers.asks(above) or speakers.asks(text[line:start])

    def is_beside_name(self, start: int) -> bool:
        """Return whether the name of another is before a note at a place of the text, or in the line above it:
        `Grand Hotel Elm` above `Established 1899`."""
        text = self.text.text
        line = text.rfind("\n", 0, start) + 1
        above = text.rfind("\n", 0, max(line - 1, 0)) + 1
        said = text[line:start].strip(" .,:–—-|·•©(")
        name = said.rpartition(". ")[2] if said else text[above : max(line - 1, 0)]
        return self._is_name(name) or own_parts.is_body(name, own_parts.site_label(self.url))

    @cached_property
    def _speakers(self) -> foreign_parts.Spans:
        own = own_parts.site_label(self.url)
        if speakers.is_interview(self.title or "", own):
            return foreign_parts.Spans([(0, len(self.text.text))])
        return foreign_parts.Spans(
            (start, end)
            for text, start, end in self._sections
            if speakers.is_interview(text, own) or self._is_name(text)
        )

    def _is_name(self, text: str) -> bool:
        return speakers.is_name(text, own_parts.site_label(self.url), self.title or "", self._common)

    @cached_property
    def _common(self) -> frozenset[str]:
        return speakers.common_words(self.text.text)

    def is_announced_as_plan(self, start: int) -> bool:
        """Return whether a heading or the line before says that goals, setbacks or examples follow."""
        lead = own_parts.lead_in(self.text.text, self.text.text.rfind("\n", 0, start) + 1)
        return start in self._plans or own_parts.announces_plans(lead)

    @cached_property
    def _others(self) -> foreign_parts.Spans:
        return own_parts.of_others(self._sections, own_parts.site_label(self.url))

    @cached_property
    def _plans(self) -> foreign_parts.Spans:
        return own_parts.of_plans(self._sections)

    def paragraph_at(self, at: int) -> int | None:
        """Return where the smallest paragraph, entry of a list or cell around a place of the text begins."""
        starts = [first for first, last in self._paragraphs if first <= at < last]
        return max(starts, default=None)

    @cached_property
    def _paragraphs(self) -> list[tuple[int, int]]:
        if self.document is None:
            return []
        spans = prose.read(self.document.page_tree(), spans_of=_PARAGRAPHS).spans
        return [(one.start, one.end) for one in spans]

    @cached_property
    def _unclear(self) -> foreign_parts.Spans:
        return own_parts.unclear(self._sections, own_parts.site_label(self.url))

    @cached_property
    def _sections(self) -> list[tuple[str, int, int]]:
        return [] if self.document is None else foreign_parts.sections(self.document)

    @cached_property
    def main(self) -> tuple[tuple[int, int], ...]:
        """The spans of `text` that are the main content; all of it if the page is not HTML or has no main content."""
        pieces = () if self.document is None else self.document.main_content().pieces
        return tuple((one.start, one.end) for one in pieces) or ((0, len(self.text.text)),)

    @property
    def shown(self) -> str:
        """What a language model sees: the main content, at its place in `text`; all else is blank."""
        text, at = self.text.text, 0
        parts: list[str] = []
        for start, end in self.main:
            parts += (_NOT_BREAK.sub(" ", text[at:start]), text[start:end])
            at = end
        return "".join(parts)

    @cached_property
    def links(self) -> frozenset[str]:
        """Addresses and texts of the links that a reader sees."""
        if self.document is None:
            return frozenset()
        shown = prose.read(self.document.page_tree(), spans_of=frozenset(("a",))).spans
        pairs = ((one.node.attributes.get("href") or "", one.node.text()) for one in shown)
        return frozenset(" ".join(text.split()) for pair in pairs for text in pair)

    @cached_property
    def words(self) -> int:
        return len(self.text.text.split())


def sources_of(
    page_id: str, url: str, body: bytes, content_type: str | None, file: FileText | None = None
) -> PageSources:
    """Never raises, for any bytes. `file` is the document in the body, if it is one: reading it needs a process with
    limits (`services.stored_files`). Without it, a body that is neither HTML nor text has no words."""
    if file is not None:
        return _of_file(page_id, url, file)
    if is_html(content_type, body):
        document = Document.parse(body, content_type, url)
        visible = document.visible()
        data = tidy(document.structured())
        article = ArticlePage(document)
        context = HtmlContext(document, data, article)
        source = _text(page_id, url, visible.text, visible.layout, document.language, context)
        roles = roles_of(url, document.title)
        return PageSources(page_id, url, document.title, source, data, document, roles, article=article)
    kind = media_type(content_type)
    text = decode(body[:MAX_TEXT], charset_of(body, content_type, url=url)) if kind.startswith("text/") else ""
    return PageSources(page_id, url, None, _text(page_id, url, text), [], None, roles_of(url))


def _of_file(page_id: str, url: str, file: FileText) -> PageSources:
    text = file.text[:MAX_TEXT]
    source = _text(page_id, url, text, FileLayout(file, len(text)), file.language or None)
    title = file.title or None
    return PageSources(page_id, url, title, source, [], None, roles_of(url, title, is_file=True), file.kind)


def _text(
    page_id: str,
    url: str,
    text: str,
    layout: TextLayout = EMPTY_LAYOUT,
    language: str | None = None,
    context: PageContext | None = None,
) -> Source:
    return Source(SourceKind.TEXT, page_id, url, text, layout=layout, language=language, context=context)
