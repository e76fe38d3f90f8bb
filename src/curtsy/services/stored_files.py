"""The text of stored bodies: HTML here, documents in the process that reads them; and pictures of PDF pages."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from threading import Lock

from curtsy.content.charset import charset_of, decode
from curtsy.content.document import Document
from curtsy.content.documents.model import FileText, Limits
from curtsy.content.documents.sniff import kind_of
from curtsy.content.head import is_html
from curtsy.services.document_process import documents

#: short files that were read last are cached: a page's text and Markdown are often requested together
_MOST_KEPT = 4
_MOST_CHARS = 1_000_000
_kept: OrderedDict[tuple[bytes, str, Limits], FileText] = OrderedDict()
#: pictures that were drawn last: a review shows the same pages for each value
_MOST_PICTURES = 24
_MOST_PICTURE_BYTES = 1_000_000
_pictures: OrderedDict[tuple[bytes, int], bytes] = OrderedDict()
#: a person does not wait longer for a picture
_PICTURE_LIMITS = Limits(seconds=10.0)
_lock = Lock()


def file_of(body: bytes, content_type: str | None, url: str, limits: Limits | None = None) -> FileText | None:
    """The document in a body; None: it is something else. Never raises: `problem` says what could not be read."""
    if not body or is_html(content_type, body):
        return None
    kind = kind_of(content_type, body, url)
    if kind is None:
        return None
    bounds = limits or Limits()
    key = (sha256(body).digest(), f"{kind} {content_type}", bounds)
    with _lock:
        if (known := _kept.get(key)) is not None:
            _kept.move_to_end(key)
            return known
    found = documents.read(kind, body, content_type, bounds)
    if len(found.text) <= _MOST_CHARS:
        with _lock:
            _kept[key] = found
            while len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
    return found


def picture_of(body: bytes, number: int) -> bytes | None:
    """A page of a PDF as PNG; None if it has no such page, or the page cannot be drawn in the time."""
    key = (sha256(body).digest(), number)
    with _lock:
        if (known := _pictures.get(key)) is not None:
            _pictures.move_to_end(key)
            return known
    found = documents.picture(body, number, _PICTURE_LIMITS)
    if found is not None and len(found) <= _MOST_PICTURE_BYTES:
        with _lock:
            _pictures[key] = found
            while len(_pictures) > _MOST_PICTURES:
                _pictures.popitem(last=False)
    return found


def text_of(body: bytes, content_type: str | None, url: str, limits: Limits | None = None) -> str:
    """What a reader sees; empty for pictures and other bodies without text."""
    if is_html(content_type, body):
        return Document.parse(body, content_type, url).text()
    if (file := file_of(body, content_type, url, limits)) is not None:
        return file.text
    return _plain(body, content_type)


def markdown_of(
    body: bytes, content_type: str | None, url: str, limits: Limits | None = None, full_page: bool = False
) -> str:
    """The main content of a page, or all of it; documents are whole."""
    if is_html(content_type, body):
        page = Document.parse(body, content_type, url)
        return page.markdown() if full_page else page.main_markdown()
    if (file := file_of(body, content_type, url, limits)) is not None:
        return file.markdown
    return _plain(body, content_type)


def _plain(body: bytes, content_type: str | None) -> str:
    kind = (content_type or "").partition(";")[0].strip().lower()
    readable = kind.startswith("text/") or kind.endswith(("json", "xml"))
    return decode(body, charset_of(body, content_type)) if readable else ""
