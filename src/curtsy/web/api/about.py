"""The OpenAPI document, and the same as a page for people."""

from __future__ import annotations

import json

from curtsy.web import api_reference, openapi
from curtsy.web.routing import JSON, Call, Media, Stream, endpoint

_HTML = "text/html; charset=utf-8"


@endpoint("GET", "/openapi.json", scope=None, answers={200: Media(type=JSON, description="OpenAPI 3.1")})
def openapi_document(call: Call) -> Stream:
    """This API as an OpenAPI 3.1 document."""
    return Stream(chunks=[json.dumps(openapi.document()).encode()], media_type=JSON)


@endpoint("GET", "/docs", scope=None, answers={200: Media(type="text/html", description="A page for people")})
def docs(call: Call) -> Stream:
    """This API on one page, without scripts or external resources."""
    page = api_reference.page(openapi.document())
    return Stream(chunks=[page.encode()], media_type=_HTML, headers={"Content-Security-Policy": api_reference.CSP})
