"""Review: a record beside the text that it was made from."""

from __future__ import annotations

from flask import Response

from curtsy.web.dashboard.site import Visit, view


@view("GET", "/review")
def review(visit: Visit) -> Response:
    return visit.page("review.html")
