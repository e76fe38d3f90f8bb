"""Pages and documents as files of Markdown with front matter."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from curtsy.content.documents.model import Limits
from curtsy.content.head import is_html
from curtsy.core.model import Page
from curtsy.export.page_rows import row_of
from curtsy.services.stored_files import markdown_of
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore, read_page

_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")

#: writes a file: its name, its blocks
Write = Callable[[str, Iterable[bytes]], None]


@dataclass(frozen=True, slots=True)
class MarkdownWriter:
    """Writes pages and documents as host/path.md."""

    store: Store
    segments: SegmentStore
    #: with menus, headers, footers and related links
    full_page: bool
    #: id of the pages' crawl
    crawl: str
    #: of reading documents; None: the defaults, without OCR
    limits: Limits | None = None

    def write(self, page: Page, write: Write) -> bool:
        """Return False if the page has no text."""
        with self.store.read() as tx:
            record = read_page(tx, self.segments, page)
        if record is None or not record.body or not (page.document or is_html(page.content_type, record.body)):
            return False
        facts = {name: value for name, value in row_of(page, self.crawl).items() if value is not None}
        # JSON is YAML: no value of a page can end the front matter.
        front = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in facts.items())
        text = markdown_of(record.body, page.content_type, page.url, self.limits, self.full_page)
        write(file_name(page), [f"---\n{front}---\n\n{text.strip()}\n".encode("utf-8", "replace")])
        return True


def file_name(page: Page) -> str:
    """`host/path-of-the-page-1a2b3c4d.md`: readable, unique by the URL's fingerprint, valid on any file system."""
    path = page.url.partition("://")[2].partition("/")[2]
    slug = _UNSAFE.sub("-", path).strip("-.")[:80] or "index"
    return f"{_UNSAFE.sub('-', page.host).strip('-.') or 'host'}/{slug}-{page.fp.hex()[:8]}.md"
