"""Evidence for the values of the schema `page`: where the page states its title, its headings and its data.

A value is what the page has at that place, except for blanks, a relative URL, or a limit of its length. The URL of the
page and the number of its words are not statements of the page, so they have no evidence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from selectolax.lexbor import LexborNode

from curtsy.content import text as prose
from curtsy.content.document import Document
from curtsy.content.documents.layout import FileLayout
from curtsy.content.documents.model import FileText
from curtsy.content.text import VisibleText
from curtsy.core.claims import Evidence, Field, Rung, Source, SourceKind, Verdict
from curtsy.grounding.json_pointer import step

HEADING_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6")


class Cited(NamedTuple):
    """A value with the source that states it."""

    field: Field
    source: Source


class Heading(NamedTuple):
    """A heading as the page has it."""

    level: int
    text: str
    node: LexborNode | None
    #: in the visible text; None: it is not visible
    span: tuple[int, int] | None


def headings(document: Document, limit: int, length: int) -> tuple[list[Heading], VisibleText]:
    """Return the first headings with text, and the visible text that their spans refer to."""
    root = document.tree.root
    visible = prose.read(document.page_tree(), spans_of=HEADING_TAGS)
    places = {one.node.mem_id: (one.start, one.end) for one in visible.spans}
    nodes = [] if root is None else root.css(",".join(HEADING_TAGS))[:limit]
    found = [
        Heading(int((node.tag or "h0")[1]), said, node, places.get(node.mem_id))
        for node in nodes
        if (said := _collapsed(node.text())[:length])
    ]
    return found, visible


def of_html(
    page: str, document: Document, facts: dict[str, Any], found: list[Heading], visible: VisibleText
) -> list[Cited]:
    """Return the values of a page that have evidence."""
    maker, text = _Maker(page, document.url), visible.text
    shown = Source(SourceKind.TEXT, page, document.url, text, layout=visible.layout)
    cited = [
        maker.attribute("/title", facts["title"], "css:title", _title(document)),
        maker.attribute("/language", facts["language"], "css:html @lang", _language(document)),
        maker.attribute("/canonical", facts["canonical"], "css:link[rel~=canonical] @href", _canonical(document)),
        *maker.data("/description", facts["description"], facts["structured"]),
    ]
    for at, (heading, value) in enumerate(zip(found, facts["headings"], strict=True)):
        path = step("/headings", str(at))
        if heading.span is not None and _collapsed(text[slice(*heading.span)]) == heading.text:
            cited.append(maker.cited(path, value, shown, *heading.span))
        elif heading.node is not None:
            cited.append(maker.attribute(path, value, f"css:h{heading.level}", heading.node.text()))
    for at, entry in enumerate(facts["structured"]):
        cited.append(maker.entry(step("/structured", str(at)), entry, step("", str(at))))
    return [one for one in cited if one is not None]


def of_file(page: str, url: str, file: FileText, facts: dict[str, Any]) -> list[Cited]:
    """Return the values of a document that have evidence."""
    maker = _Maker(page, url)
    source = Source(SourceKind.TEXT, page, url, file.text, layout=FileLayout(file, len(file.text)))
    cited = [maker.attribute(f"/{name}", facts[name], name, getattr(file, name)) for name in ("title", "language")]
    cited += [
        maker.cited(step("/headings", str(at)), value, source, one.start, one.end)
        for at, (one, value) in enumerate(zip(file.headings, facts["headings"], strict=False))
    ]
    return [one for one in cited if one is not None]


class _Maker:
    """Makes the fields of one page."""

    def __init__(self, page: str, url: str) -> None:
        self._page, self._url = page, url

    def attribute(self, path: str, value: Any, locator: str, said: str | None) -> Cited | None:
        if not value or not said:
            return None
        source = Source(SourceKind.ATTRIBUTE, self._page, self._url, said, locator)
        return self.cited(path, value, source, 0, len(said))

    def data(self, path: str, value: Any, structured: list[dict[str, Any]]) -> Iterator[Cited]:
        """A text of the page's structured data, by its JSON pointer."""
        for at, entry in enumerate(structured if value else ()):
            for name, said in entry["data"].items() if isinstance(entry["data"], dict) else ():
                texts = said if isinstance(said, list) else [said]
                if name in ("description", "og:description") and texts and _is_stated(value, texts[0]):
                    pointer = step(f"/{at}/data", name) + ("/0" if isinstance(said, list) else "")
                    source = Source(SourceKind.STRUCTURED, self._page, self._url, texts[0], pointer)
                    yield self.cited(path, value, source, 0, len(texts[0]))
                    return

    def entry(self, path: str, entry: dict[str, Any], pointer: str) -> Cited:
        """An entry of the structured data as a whole, as JSON."""
        said = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace").decode()
        source = Source(SourceKind.STRUCTURED, self._page, self._url, said, pointer)
        return self.cited(path, entry, source, 0, len(said))

    def cited(self, path: str, value: Any, source: Source, start: int, end: int) -> Cited:
        layout, quote = source.layout, source.text[start:end]
        evidence = Evidence(
            page=source.page, url=source.url, source=source.kind, locator=source.locator, sha256=source.sha256,
            start=start, end=end, quote=quote, visibility=layout.visibility_at(start, end), part=layout.part_at(start),
            boxes=layout.boxes_at(start, end), ocr=layout.recognized,
        )  # fmt: skip
        said = value["text"] if isinstance(value, dict) and "level" in value else value
        exact = said == quote or not isinstance(said, str)
        verdict, note = (Verdict.SUPPORTED, "") if exact else (Verdict.DERIVED, _rule(path))
        field = Field(path=path, value=value, rung=Rung.FUNCTION, verdict=verdict, evidence=(evidence,), note=note)
        return Cited(field, source)


def _rule(path: str) -> str:
    return "url" if path == "/canonical" else "normalised"


def _is_stated(value: str, said: Any) -> bool:
    return isinstance(said, str) and said.strip() == value


def _title(document: Document) -> str | None:
    titles = (node.text() for node, tag in zip(document.nodes, document.tags, strict=True) if tag == "title")
    return next((one for one in titles if document.title and _collapsed(one).startswith(document.title)), None)


def _language(document: Document) -> str | None:
    root = document.tree.root
    return None if root is None else root.attributes.get("lang")


def _canonical(document: Document) -> str | None:
    for tag, attributes in zip(document.tags, document.attributes, strict=True):
        if tag == "link" and "canonical" in (attributes.get("rel") or "").lower().split():
            return attributes.get("href")
    return None


def _collapsed(text: str) -> str:
    return " ".join(text.split())
