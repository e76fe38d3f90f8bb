"""Workers: what each does, its memory and uptime; drain; and a link to Flower."""

from __future__ import annotations

from flask import Response

from curtsy.web.api import workers as api
from curtsy.web.dashboard.overview import shown
from curtsy.web.dashboard.site import PageRequest, action, view


@view("GET", "/workers")
def workers(req: PageRequest) -> Response:
    return req.render("workers.html", flower=req.settings.flower_url, **shown(req.backend))


action(
    "/workers/<name>/drain", "admin", api.drain_worker, lambda _: "/workers",
    "{0.name} finishes what it does and takes nothing new.",
)  # fmt: skip
action("/workers/<name>/resume", "admin", api.resume_worker, lambda _: "/workers", "{0.name} takes tasks again.")
