"""What all pages share: sessions, form tokens, rendering and errors.

    @view("POST", "/hosts/<host>/block", scope="admin")
    def block(req: PageRequest, host: str) -> Response: ...

Views call the functions of the API, so a page can do what the API can, and no more.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from flask import Blueprint, Flask, Request, Response, g, render_template, request
from pydantic import BaseModel, ValidationError

from curtsy import __version__
from curtsy.core.errors import CurtsyError
from curtsy.core.settings import Settings
from curtsy.store.engine import Store
from curtsy.web import auth, limits
from curtsy.web.backend_thread import BackendThread
from curtsy.web.dashboard import words
from curtsy.web.dashboard.sessions import Session, Sessions
from curtsy.web.problems import Problem, of_validation
from curtsy.web.routing import Call

M = TypeVar("M", bound=BaseModel)

STATIC = Path(__file__).parent.parent / "static"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
#: name, path
MENU = (
    ("Overview", "/"),
    ("Crawls", "/crawls"),
    ("Hosts", "/hosts"),
    ("Failures", "/failures"),
    ("Review", "/review"),
    ("Selectors", "/selectors"),
    ("Schedules", "/schedules"),
    ("Explain", "/explain"),
    ("Workers", "/workers"),
    ("Keys", "/keys"),
    ("Audit", "/audit"),
)
#: rows of a list on one page
ROWS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    method: str
    rule: str
    #: None: no sign-in is needed
    scope: str | None
    fn: Callable[..., Response]


VIEWS: list[View] = []


def view(method: str, rule: str, *, scope: str | None = "read") -> Callable[[Callable[..., Response]], Any]:
    """Declare a page, or the target of a form."""

    def declare(fn: Callable[..., Response]) -> Callable[..., Response]:
        VIEWS.append(View(method=method, rule=rule, scope=scope, fn=fn))
        return fn

    return declare


def action(
    rule: str, scope: str, perform: Callable[[Call, str], Any], back: Callable[[Any], str], note: str
) -> None:  # fmt: skip
    """Declare a form that calls one function of the API, then shows `note` on the page `back`."""

    def submit(req: PageRequest, **names: str) -> Response:
        (name,) = names.values()
        done = perform(req.call(), name)
        return req.redirect(back(done), note.format(done))

    view("POST", rule, scope=scope)(submit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the pages of an application share."""

    backend: BackendThread
    gate: auth.Gate
    limit: limits.RateLimit
    sessions: Sessions
    #: error -> problem
    problem_of: Callable[[Exception], Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """One request of a browser."""

    site: Site
    session: Session
    #: None: not signed in
    caller: auth.Caller | None

    @property
    def backend(self) -> BackendThread:
        return self.site.backend

    @property
    def settings(self) -> Settings:
        return self.site.backend.settings

    @property
    def store(self) -> Store:
        return self.site.backend.store

    def may(self, scope: str) -> bool:
        return self.caller is not None and self.caller.may(scope)

    def call(self) -> Call:
        """The first argument of the API's functions."""
        assert self.caller is not None
        return Call(backend=self.backend, request_id=g.request_id, caller=self.caller)

    def query(self, model: type[M], *names: str, **fixed: Any) -> M:
        """A query of the API, from the address of this page; empty form fields are omitted."""
        given = {name: value for name in names if (value := request.args.get(name, "").strip())}
        return valid(model, "query", {**given, **fixed})

    def render(self, template: str, status: int = 200, **shown: Any) -> Response:
        note = self.site.sessions.noted(request.args["note"]) if "note" in request.args else None
        body = render_template(
            template, req=self, note=note, menu=MENU, here=request.path, csrf=self.site.sessions.token(self.session),
            version=__version__, settings=self.settings, **shown,
        )  # fmt: skip
        return html(body, status)

    def mistake(self, error: Problem | CurtsyError) -> Problem:
        """What to show above the form that caused this error; raises it if the form did not."""
        problem = self.site.problem_of(error)
        if problem.status >= 500:
            raise error
        return problem

    def redirect(self, where: str, note: str = "") -> Response:
        """To another page, which shows `note`."""
        mark = "&" if "?" in where else "?"
        target = f"{where}{mark}{urlencode({'note': self.site.sessions.note(note)})}" if note else where
        return Response(status=303, headers={"Location": target})


def html(body: str, status: int = 200) -> Response:
    # Not no-referrer: our own forms would have no Origin. Other sites still get no referrer.
    headers = {"Content-Security-Policy": CSP, "Referrer-Policy": "same-origin"}
    return Response(body, status, headers=headers, content_type="text/html; charset=utf-8")


def valid(model: type[M], where: str, given: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise of_validation(where, error) from None


def filled(name: str) -> str | None:
    """A field of the submitted form; None if it is empty."""
    return request.form.get(name, "").strip() or None


def with_query(**changes: Any) -> str:
    """This page with changed query parameters, without its note; None removes a parameter."""
    parts = {name: value for name, value in request.args.items() if name != "note"} | changes
    kept = {name: value for name, value in parts.items() if value not in (None, "")}
    return f"{request.path}?{urlencode(kept)}" if kept else request.path


@cache
def asset(name: str) -> str:
    """The address of a static file, with a digest of its content."""
    return f"/static/{name}?v={hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:10]}"


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def register(app: Flask, site: Site) -> None:
    pages = Blueprint("dashboard", "curtsy.web.dashboard", template_folder="../templates")
    for one in VIEWS:
        pages.add_url_rule(
            one.rule,
            endpoint=f"{one.method} {one.rule}".replace(".", "_"),
            view_func=_wrapped(one, site),
            methods=[one.method],
            provide_automatic_options=False,
        )
    pages.register_error_handler(Exception, lambda error: _failed(site, error))
    app.register_blueprint(pages)
    app.jinja_env.filters.update(words.FILTERS)
    app.jinja_env.tests["link"] = words.is_link
    app.jinja_env.globals.update(
        asset=asset, with_query=with_query, as_json=as_json, crawl_states=words.STATES, ceil=math.ceil
    )
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True


def _wrapped(one: View, site: Site) -> Callable[..., Response]:
    def answer(**parameters: str) -> Response:
        session = site.sessions.of(request)
        fresh = session or site.sessions.new()
        g.session = fresh
        caller = g.caller = _admitted(site, session, one.scope)
        if one.method == "POST":
            _check_form(site, session)
        response = one.fn(PageRequest(site=site, session=fresh, caller=caller), **parameters)
        if session is None and "Set-Cookie" not in response.headers and response.mimetype == "text/html":
            site.sessions.put(response, fresh, request)
        return response

    return answer


def _admitted(site: Site, session: Session | None, scope: str | None) -> auth.Caller | None:
    """The key that signed in, or a caller that needs no key."""
    try:
        if session is not None and session.key is not None:
            caller = site.gate.of_session(session.key)
        else:
            caller = site.gate.admit(request, "read")
    except Problem:
        if scope is None:
            return None
        site.limit.take(request.remote_addr or "")
        raise
    if scope is not None:
        site.limit.take(caller.name)
        if not caller.may(scope):
            raise Problem(403, "scope-missing", f"Your key needs the scope {scope}.")
    return caller


def _check_form(site: Site, session: Session | None) -> None:
    """Accept only forms that were rendered for this session."""
    request.max_content_length = int(site.backend.settings.api_body_mb * 1_000_000)
    request.max_form_memory_size = request.max_content_length
    _check_origin(request)
    if session is None or not site.sessions.is_token(session, request.form.get("csrf", "")):
        raise Problem(403, "form-too-old", "This form is too old or belongs to another session. Reload the page.")


def _check_origin(given: Request) -> None:
    origin, host = given.headers.get("Origin"), given.headers.get("Host", "")
    foreign = origin is not None and origin not in (f"http://{host}", f"https://{host}")
    if foreign or given.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Problem(403, "origin-not-allowed", "Forms of other websites are refused.")


def _failed(site: Site, error: Exception) -> Response:
    problem = site.problem_of(error)
    if problem.status == 401 and request.method == "GET" and "text/html" in request.headers.get("Accept", ""):
        target = request.full_path.rstrip("?")
        return Response(status=303, headers={"Location": f"/sign-in?{urlencode({'next': target})}"})
    session = g.get("session") or site.sessions.new()
    try:
        caller = _admitted(site, site.sessions.of(request), None)
    except Exception:  # the store may be unavailable
        caller = None
    shown = PageRequest(site=site, session=session, caller=caller)
    try:
        response = shown.render("error.html", problem.status, problem=problem, request_id=g.request_id)
    except Exception:  # without the store nothing can be signed
        text = f"{problem.detail}\nrequest_id: {g.request_id}\n"
        response = Response(text, problem.status, content_type="text/plain; charset=utf-8")
    response.headers.update(problem.headers)
    return response
