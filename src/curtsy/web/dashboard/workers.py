"""Workers: who is there, for which queues, when last heard of; and where Flower shows more."""

from __future__ import annotations

from flask import Response

from curtsy.web.dashboard.overview import shown
from curtsy.web.dashboard.site import Visit, view


@view("GET", "/workers")
def workers(visit: Visit) -> Response:
    return visit.page("workers.html", flower=visit.settings.flower_url, **shown(visit.bridge))
