"""EPUB: one part per chapter of the spine, read as HTML."""

from __future__ import annotations

from curtsy.content.documents.builder import Builder, Unreadable
from curtsy.content.documents.html_blocks import write_html
from curtsy.content.documents.packages import START, Event, Package, resolve, text_facts

_CONTAINER = "META-INF/container.xml"
_FACTS = {"dc:title": "title", "dc:creator": "author", "dc:date": "created", "dc:language": "language"}
_HTML = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")


def read_epub(builder: Builder, body: bytes, _content_type: str | None = None) -> None:
    package = Package(body, builder.limits)
    book = _book(package)
    folder = book.rpartition("/")[0]
    text_facts(builder, package.optional(book), _FACTS.get)
    chapters = _chapters(list(package.events(book)), folder)
    if not _is_readable(package, chapters):
        raise Unreadable("encrypted")
    builder.page_count = len(chapters)
    missing = False
    for chapter in chapters:
        if chapter not in package:
            missing = True
            continue
        builder.begin("chapter")
        write_html(builder, package.read(chapter))
    if missing:
        raise Unreadable("malformed")


def _book(package: Package) -> str:
    for event in package.optional(_CONTAINER):
        if event.kind == START and event.name.endswith("rootfile") and event.get("full-path") in package:
            return event.get("full-path")
    for name in package.names():
        if name.endswith(".opf"):
            return name
    raise Unreadable("malformed")


def _chapters(found: list[Event], folder: str) -> list[str]:
    items = {
        event.get("id"): resolve(folder, event.get("href"))
        for event in found
        if event.kind == START and event.name == "opf:item" and event.get("media-type") in _HTML
    }
    order = [event.get("idref") for event in found if event.kind == START and event.name == "opf:itemref"]
    return [items[one] for one in dict.fromkeys(order) if one in items]


def _is_readable(package: Package, chapters: list[str]) -> bool:
    """Fonts may be scrambled; a book whose chapters are encrypted cannot be read."""
    locked = {
        resolve("", event.get("URI"))
        for event in package.optional("META-INF/encryption.xml")
        if event.kind == START and event.name.endswith("CipherReference")
    }
    return locked.isdisjoint(chapters)
