"""Sign in with an API key, and sign out."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import Response, request

from curtsy.core.observe import log
from curtsy.web.dashboard.site import PageRequest, filled, view
from curtsy.web.problems import Problem


@view("GET", "/sign-in", scope=None)
def sign_in_form(req: PageRequest) -> Response:
    if req.caller is not None:
        return req.redirect(_inside(request.args.get("next", "")))
    return req.render("sign_in.html", next=_inside(request.args.get("next", "")), wrong=None)


@view("POST", "/sign-in", scope=None)
def sign_in(req: PageRequest) -> Response:
    """Starts a new session, to prevent session fixation."""
    target = _inside(request.form.get("next", ""))
    site = req.site
    try:
        caller = site.gate.of_key(filled("key") or "", request.remote_addr or "")
    except Problem:
        site.limit.take(request.remote_addr or "")
        wrong = "This key is unknown, has expired or was revoked."
        return req.render("sign_in.html", 401, next=target, wrong=wrong)
    log("signed_in", key=caller.name)
    response = req.redirect(target)
    site.sessions.put(response, site.sessions.new(caller.key_id), request)
    return response


@view("POST", "/sign-out", scope=None)
def sign_out(req: PageRequest) -> Response:
    """Ends the session on the server: a copy of its cookie is worth nothing."""
    if req.session.key is not None:
        req.site.sessions.end(req.session)
    response = req.redirect("/sign-in")
    req.site.sessions.drop(response)
    return response


def _inside(target: str) -> str:
    """A path of this site; anything else becomes the overview."""
    parts = urlsplit(target)
    ours = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    return target if ours and target.isprintable() and "\\" not in target else "/"
