"""Pages and documents as files of Markdown with front matter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from curtsy.content.head import is_html
from curtsy.core.model import Page
from curtsy.export.page_rows import PageRows, row_of
from curtsy.services.stored_files import markdown_of
from curtsy.store.segments import read_without_transaction

# `json.dumps` with options makes an encoder for each value.
_as_json = json.JSONEncoder(ensure_ascii=False).encode
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")


def files(rows: PageRows, found: Iterable[Page], full_page: bool = False) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the pages and documents with text as host/path.md.

    `full_page`: with menus, headers, footers and related links.
    """
    for page in found:
        record = read_without_transaction(rows.store, rows.segments, page)
        if record is None or not record.body or not (page.document or is_html(page.content_type, record.body)):
            continue
        facts = {name: value for name, value in row_of(page, rows.crawl.id).items() if value is not None}
        # JSON is YAML: no value of a page can end the front matter.
        front = "".join(f"{name}: {_as_json(value)}\n" for name, value in facts.items())
        text = markdown_of(record.body, page.content_type, page.url, rows.limits, full_page)
        yield file_name(page), [f"---\n{front}---\n\n{text.strip()}\n".encode("utf-8", "replace")]


def file_name(page: Page) -> str:
    """`host/path-of-the-page-1a2b3c4d.md`: readable, unique by the URL's fingerprint, valid on any file system."""
    path = page.url.partition("://")[2].partition("/")[2]
    slug = _UNSAFE.sub("-", path).strip("-.")[:80] or "index"
    return f"{_UNSAFE.sub('-', page.host).strip('-.') or 'host'}/{slug}-{page.fp.hex()[:8]}.md"
