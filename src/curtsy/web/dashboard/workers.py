"""Workers: what each does, its memory and uptime; drain; and a link to Flower."""

from __future__ import annotations

from flask import Response

from curtsy.web.dashboard.overview import shown
from curtsy.web.dashboard.site import PageRequest, view


@view("GET", "/workers")
def workers(req: PageRequest) -> Response:
    return req.render("workers.html", flower=req.settings.flower_url, **shown(req.backend))
