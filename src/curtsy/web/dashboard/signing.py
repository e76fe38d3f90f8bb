"""Signing in with an API key, and out again."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import Response, request

from curtsy.core.observe import log
from curtsy.web.dashboard.site import Visit, filled, view
from curtsy.web.problems import Problem


@view("GET", "/sign-in", scope=None)
def sign_in_form(visit: Visit) -> Response:
    if visit.caller is not None:
        return visit.go(_inside(request.args.get("next", "")))
    return visit.page("sign_in.html", next=_inside(request.args.get("next", "")), wrong=None)


@view("POST", "/sign-in", scope=None)
def sign_in(visit: Visit) -> Response:
    """The session that begins is another one than that of the form: nobody else can know it."""
    target = _inside(request.form.get("next", ""))
    site = visit.site
    try:
        caller = site.gate.of_key(filled("key") or "")
    except Problem:
        site.limit.take(request.remote_addr or "")
        wrong = "This key is not known here, has expired or was revoked."
        return visit.page("sign_in.html", 401, next=target, wrong=wrong)
    log("signed_in", key=caller.name)
    response = visit.go(target)
    site.sessions.put(response, site.sessions.new(caller.key), request)
    return response


@view("POST", "/sign-out", scope=None)
def sign_out(visit: Visit) -> Response:
    response = visit.go("/sign-in")
    visit.site.sessions.drop(response)
    return response


def _inside(target: str) -> str:
    """An address of ours; whatever leads elsewhere is the overview."""
    parts = urlsplit(target)
    ours = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    return target if ours and target.isprintable() and "\\" not in target else "/"
