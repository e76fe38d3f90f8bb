"""Learned selectors: the list, one of them with the pages that taught it, and the page objects as a download."""

from __future__ import annotations

from flask import Response, request

from curtsy.export import page_objects
from curtsy.records import learned_selectors
from curtsy.web.api import selectors as api
from curtsy.web.dashboard.site import ROWS, PageRequest, action, view
from curtsy.web.models.selectors import SelectorDetails, SelectorsQuery

#: of one file
_MOST_EXPORTED = 100_000


@view("GET", "/selectors")
def selectors(req: PageRequest) -> Response:
    query = req.query(
        SelectorsQuery, "cursor", "host", "schema", limit=ROWS, state=request.args.get("state") or "active"
    )
    return req.render("selectors.html", found=api.list_selectors(req.call(), query), query=query)


@view("GET", "/selectors/page-objects.py")
def page_objects_file(req: PageRequest) -> Response:
    """The active selectors as web-poet page objects, as an attachment."""
    query = req.query(SelectorsQuery, "host", "schema")
    found = learned_selectors.find(req.store, 0, _MOST_EXPORTED, host=query.host, schema=query.schema_name)
    response = Response(page_objects.module_of(found)[0], content_type="text/x-python; charset=utf-8")
    response.headers.set("Content-Disposition", "attachment", filename="page_objects.py")
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


@view("GET", "/selectors/<id>")
def selector(req: PageRequest, id: str) -> Response:
    return req.render("selector.html", one=api.selector(req.call(), id))


def _page(selector: SelectorDetails) -> str:
    return f"/selectors/{selector.id}"


action(
    "/selectors/<id>/forget", "write", api.forget_selector, _page, "Retired. Curtsy asks the model again for {0.field}."
)
