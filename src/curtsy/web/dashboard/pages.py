"""One page: its metadata, text and headers, and the stored response as a download. No content of it is executed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from flask import Response

from curtsy.content.charset import charset_of, decode
from curtsy.content.document import Document
from curtsy.content.documents.model import Limits
from curtsy.content.head import is_html
from curtsy.core.document_facts import PROBLEMS
from curtsy.core.errors import CurtsyError
from curtsy.core.model import Page
from curtsy.export import page_details
from curtsy.export.page_rows import segments_of
from curtsy.services.stored_files import file_of
from curtsy.store import pages as stored
from curtsy.store.segments import read_page
from curtsy.store.warc import WarcRecord
from curtsy.web.api import pages as api
from curtsy.web.dashboard import words
from curtsy.web.dashboard.site import PageRequest, view
from curtsy.web.models.pages import page_of
from curtsy.web.routing import Download

#: larger bodies are only offered as a download
_MOST_BYTES = 4_000_000
#: characters of text that are shown
_MOST_TEXT = 60_000
#: a person does not wait longer for a document
_LIMITS = Limits(seconds=5.0, pages=100)
_TEXTS = ("text/", "application/json", "application/ld+json", "application/xml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A stored response, for display."""

    headers: tuple[tuple[str, str], ...] = ()
    text: str = ""
    cut: bool = False
    #: why there is no text
    why: str = ""


@view("GET", "/pages/<id>")
def page(req: PageRequest, id: str) -> Response:
    found = api.page(req.call(), id)
    with req.store.read() as tx:
        row = stored.by_id(tx, found.id)
    read = Reading(why="It was deleted meanwhile.") if row is None else reading(req, row)
    return req.render("page.html", page=found, read=read, problems=PROBLEMS, what="pages")


@view("GET", "/responses/<id>")
def response(req: PageRequest, id: str) -> Response:
    """A redirect or an error."""
    found = page_details.find(req.store, req.settings, api.stored_response(req.call(), id).id, None)
    assert found.response is not None
    read = _shown(found.response, found.page)
    return req.render(
        "page.html", page=page_of(found.page, found.crawl), read=read, problems=PROBLEMS, what="responses"
    )


@view("GET", "/pages/<id>/content")
def page_content(req: PageRequest, id: str) -> Response:
    """As in the API: an attachment, which a browser does not show as part of this site."""
    return _attached(api.content(req.call(), id))


@view("GET", "/responses/<id>/content")
def response_content(req: PageRequest, id: str) -> Response:
    return _attached(api.response_content(req.call(), id))


def _attached(found: Download) -> Response:
    assert isinstance(found, Download)
    response = Response(found.body, content_type=found.media_type)
    response.headers.set("Content-Disposition", "attachment", filename=found.name)
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


@view("GET", "/pages/<id>/pictures/<number>")
def page_picture(req: PageRequest, id: str, number: str) -> Response:
    """As in the API. The server drew it, so a browser may show it."""
    found = api.picture(req.call(), id, number)
    assert isinstance(found, Download)
    response = Response(found.body, content_type=found.media_type)
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response.headers["Cache-Control"] = "private, max-age=3600"
    return response


def reading(req: PageRequest, row: Page) -> Reading:
    """The headers and the text of a stored page."""
    if row.body is None:
        return Reading(why="The body was not stored.")
    try:
        with closing(segments_of(req.settings)) as segments, req.store.read() as tx:
            record = read_page(tx, segments, row)
    except CurtsyError as error:
        return Reading(why=f"The stored response cannot be read: {error}")
    if record is None or record.type not in ("response", "revisit"):
        return Reading(why="The body was not stored.")
    return _shown(record, row)


def _shown(record: WarcRecord, row: Page) -> Reading:
    if (file := file_of(record.body, row.content_type, row.url, _LIMITS)) is not None:
        text, cut = words.inert(file.text[:_MOST_TEXT]), file.truncated or len(file.text) > _MOST_TEXT
        why = "" if text else "The document has no text that can be shown. Download it instead."
        return Reading(headers=record.headers, text=text, cut=cut, why=why)
    if len(record.body) > _MOST_BYTES:
        return Reading(headers=record.headers, why="The body is too large to show. Download it instead.")
    kind = (row.content_type or "").lower()
    if is_html(row.content_type, record.body):
        text = Document.parse(record.body, row.content_type, row.url).text()
    elif kind.startswith(_TEXTS):
        text = decode(record.body, charset_of(record.body, row.content_type, url=row.url))
    else:
        return Reading(headers=record.headers, why="The body is not text. Download it instead.")
    return Reading(headers=record.headers, text=words.inert(text[:_MOST_TEXT]), cut=len(text) > _MOST_TEXT)
