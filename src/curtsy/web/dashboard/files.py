"""The static files: style sheet, scripts and icon."""

from __future__ import annotations

from flask import Response

from curtsy.web.dashboard.site import STATIC, PageRequest, view
from curtsy.web.problems import Problem

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml; charset=utf-8",
}
#: the address contains a digest of the file
_KEEP = "public, max-age=31536000, immutable"


@view("GET", "/static/<name>", scope=None)
def static_file(req: PageRequest, name: str) -> Response:
    kind = _TYPES.get(name.rpartition(".")[2])
    if kind is None or name not in {file.name for file in STATIC.iterdir()}:
        raise Problem(404, "no-such-route", "This file does not exist.")
    return Response((STATIC / name).read_bytes(), headers={"Cache-Control": _KEEP}, content_type=kind)


@view("GET", "/favicon.ico", scope=None)
def favicon(req: PageRequest) -> Response:
    return Response(status=303, headers={"Location": "/static/mark.svg", "Cache-Control": "max-age=86400"})
