"""Which responses are documents, as their headers and URL show: PDF, office files, e-books, tables, plain text.

The fetch needs this before the body arrives. `content.documents` looks at the bytes too.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import unquote, urlsplit

_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"
#: content type -> kind
TYPES = {
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    f"{_OFFICE}.presentationml.presentation": "pptx",
    f"{_OPEN}.text": "odt",
    f"{_OPEN}.spreadsheet": "ods",
    f"{_OPEN}.presentation": "odp",
    "application/rtf": "rtf",
    "text/rtf": "rtf",
    "application/epub+zip": "epub",
    "text/csv": "csv",
    "application/csv": "csv",
    "text/tab-separated-values": "csv",
    "text/plain": "text",
    "text/markdown": "text",
}
#: ending of a file name -> kind
_ENDINGS = {
    **{kind: kind for kind in TYPES.values() if kind != "text"},
    "tsv": "csv",
    "txt": "text",
    "md": "text",
}
#: types that say nothing about the content: the file name decides
_VAGUE = frozenset(
    ("application/octet-stream", "binary/octet-stream", "application/download", "application/force-download",
     "application/x-download", "application/zip", "application/x-zip-compressed", "application/unknown")
)  # fmt: skip
KINDS = tuple(dict.fromkeys(TYPES.values()))


@lru_cache(maxsize=1024)
def kind_of_type(content_type: str) -> str | None:
    """The kind of document that a content type names; empty if it says nothing; None if it names something else."""
    essence = content_type.partition(";")[0].strip().lower()
    return "" if essence in _VAGUE else TYPES.get(essence)


def kind_of_name(name: str) -> str | None:
    """The kind that the ending of a file name shows."""
    stem, dot, ending = name.rpartition(".")
    return _ENDINGS.get(ending.lower()) if dot and stem else None


def kind_of_url(url: str) -> str | None:
    try:
        return kind_of_name(unquote(urlsplit(url).path.rpartition("/")[2]))
    except ValueError:
        return None


def kind_of_response(content_type: str | None, url: str, disposition: str | None = None) -> str | None:
    """The kind by the content type; if that says nothing, by the name in Content-Disposition or the URL.

    >>> kind_of_response("application/octet-stream", "http://a.test/files/report.pdf?v=2")
    'pdf'
    """
    kind = kind_of_type(content_type) if content_type else ""
    if kind != "":
        return kind
    if not content_type:
        return None
    named = (disposition or "").partition("filename")[2].lstrip("*=\"' ").partition(";")[0].strip("\"' ")
    return kind_of_name(named) or kind_of_url(url)
