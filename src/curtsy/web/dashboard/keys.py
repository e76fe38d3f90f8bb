"""API keys: made (the secret is shown once), listed, revoked."""

from __future__ import annotations

from flask import Response, request

from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.store import keys as stored
from curtsy.web import auth
from curtsy.web.dashboard.site import Visit, filled, view
from curtsy.web.problems import Problem

_DAY_MS = 86_400_000


@view("GET", "/keys", scope="admin")
def keys(visit: Visit) -> Response:
    return _listed(visit)


@view("POST", "/keys", scope="admin")
def make_key(visit: Visit) -> Response:
    name = filled("name") or ""
    scope = request.form.get("scope", "")
    days = filled("days")
    if not name or len(name) > 100 or not name.isprintable():
        raise UsageError("Give the key a name of 1 to 100 characters, so that you know it again.")
    if scope not in auth.SCOPES:
        raise UsageError("Choose what the key may do.")
    if days is not None and not (days.isascii() and days.isdigit() and len(days) <= 5 and 0 < int(days) <= 36500):
        raise UsageError("Days are a number from 1 to 36500, or nothing at all.")
    now_ms = clock.now_ms()
    text, key = auth.new_key(name, [scope], now_ms, None if days is None else now_ms + int(days) * _DAY_MS)
    visit.store.run(stored.create, key)
    return _listed(visit, made=text)


@view("POST", "/keys/<id>/revoke", scope="admin")
def revoke_key(visit: Visit, id: str) -> Response:
    if not id.isalnum() or not visit.store.run(stored.revoke, id, clock.now_ms()):
        raise Problem(404, "no-such-key", "There is no key of that id.")
    return visit.go("/keys", "Revoked: it is refused from the next request on.")


def _listed(visit: Visit, made: str | None = None) -> Response:
    with visit.store.read() as tx:
        found = stored.list_all(tx)
    return visit.page("keys.html", keys=found, made=made, now_ms=clock.now_ms(), scopes=auth.SCOPES)
