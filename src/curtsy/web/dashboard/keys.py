"""API keys: create (the secret is shown once), list, revoke."""

from __future__ import annotations

from flask import Response, request

from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.store import keys as stored
from curtsy.web import auth
from curtsy.web.dashboard.site import PageRequest, filled, view
from curtsy.web.problems import Problem

_DAY_MS = 86_400_000


@view("GET", "/keys", scope="admin")
def keys(req: PageRequest) -> Response:
    return _listed(req)


@view("POST", "/keys", scope="admin")
def make_key(req: PageRequest) -> Response:
    name = filled("name") or ""
    scope = request.form.get("scope", "")
    days = filled("days")
    if not name or len(name) > 100 or not name.isprintable():
        raise UsageError("Enter a name of 1 to 100 characters for the key.")
    if scope not in auth.SCOPES:
        raise UsageError("Choose the scope of the key.")
    if days is not None and not (days.isascii() and days.isdigit() and len(days) <= 5 and 0 < int(days) <= 36500):
        raise UsageError("Days must be a number from 1 to 36500, or empty.")
    now_ms = clock.now_ms()
    text, key = auth.new_key(name, [scope], now_ms, None if days is None else now_ms + int(days) * _DAY_MS)
    req.store.run(stored.create, key)
    return _listed(req, made=text)


@view("POST", "/keys/<id>/revoke", scope="admin")
def revoke_key(req: PageRequest, id: str) -> Response:
    if not id.isalnum() or not req.store.run(stored.revoke, id, clock.now_ms()):
        raise Problem(404, "no-such-key", "There is no key with this id.")
    return req.redirect("/keys", "Revoked. The next request with it is refused.")


def _listed(req: PageRequest, made: str | None = None) -> Response:
    with req.store.read() as tx:
        found = stored.list_all(tx)
    return req.render("keys.html", keys=found, made=made, now_ms=clock.now_ms(), scopes=auth.SCOPES)
