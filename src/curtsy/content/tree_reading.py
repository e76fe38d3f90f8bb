"""Reading a page from its tree, for the pages that the scanner cannot read, or without it.

Apart from `reading.py`, because most crawls need no tree: the parser and what reads trees take 0.1 s to import.
"""

from __future__ import annotations

from curtsy.content.document import Document
from curtsy.content.links import hrefs, without_fragments
from curtsy.content.needs_browser import needs_browser
from curtsy.content.reading import Reading, read_by_scan
from curtsy.core import failpoints


def read(body: bytes, content_type: str | None, url: str, agent: str, auto_render: bool) -> Reading:
    """Never raises, whatever the bytes. A page that waits for a browser, and is to be indexed, has no links yet."""
    reading = read_by_scan(body, content_type, url, agent, auto_render)
    return read_tree(body, content_type, url, agent, auto_render) if reading is None else reading


def read_tree(body: bytes, content_type: str | None, url: str, agent: str, auto_render: bool) -> Reading:
    """What the page's tree says: `read` for pages that the scanner cannot read, or without it."""
    if failpoints.slow_page:
        failpoints.be_slow(url)
    document = Document.parse(body, content_type, url, agent)
    browser = needs_browser(document, body) if auto_render and not document.robots_noindex else None
    return Reading(
        document.title,
        document.charset,
        document.canonical,
        document.language,
        document.robots_noindex,
        document.robots_nofollow,
        document.base_url,
        [] if document.robots_nofollow else list(without_fragments(hrefs(document))),
        document.truncated,
        browser,
    )
