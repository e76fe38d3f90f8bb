"""The audit log: requests that changed something, and refused ones."""

from __future__ import annotations

from flask import Response

from curtsy.web.api import audit as api
from curtsy.web.dashboard.site import ROWS, PageRequest, view
from curtsy.web.models.audit import AuditQuery


@view("GET", "/audit", scope="admin")
def audit(req: PageRequest) -> Response:
    query = req.query(AuditQuery, "cursor", "key", "crawl", "since", limit=ROWS)
    return req.render("audit.html", found=api.list_audit(req.call(), query), asked=query)
