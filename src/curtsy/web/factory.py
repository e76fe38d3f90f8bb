"""The Flask application, built from the declared endpoints."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable, Mapping
from typing import IO, Any

from flask import Flask, Response, current_app, g, request
from gunicorn.http.errors import ParseException
from pydantic import BaseModel, ValidationError
from werkzeug.exceptions import HTTPException

from curtsy.core import tracing
from curtsy.core.errors import (
    CurtsyError,
    KeyReused,
    RefusedSeeds,
    SchemaMismatch,
    Unavailable,
    UnknownCrawl,
    UnknownRecord,
    UploadHeld,
    UsageError,
    WrongState,
)
from curtsy.core.model import new_id
from curtsy.core.observe import log, request_id
from curtsy.core.settings import Settings
from curtsy.web import api, auth, dashboard, limits
from curtsy.web.audit import Audit
from curtsy.web.backend_thread import BackendThread
from curtsy.web.dashboard import site
from curtsy.web.dashboard.sessions import Sessions
from curtsy.web.forwarding import Forwarding
from curtsy.web.problems import MEDIA_TYPE, Mistake, Problem, no_such_record, of_status, of_validation
from curtsy.web.routing import ENDPOINTS, JSON, Call, Download, Endpoint, Stream, check, settled

__all__ = ["api", "create_app", "dashboard"]

#: valid request ids: visible ASCII
_REQUEST_ID = re.compile(r"[!-~]{1,128}")
_RETRY_S = 5
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-store",
}


def create_app(settings: Settings, backend: BackendThread | None = None, *, host: str | None = None) -> Flask:
    """An application with these settings. `host` is the address it is bound to (None: `api_host`)."""
    app = Flask("curtsy.web", static_folder=None, template_folder=None)
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    app.json.sort_keys = False  # type: ignore[attr-defined]
    parts = backend or BackendThread(settings)
    app.extensions["curtsy"] = parts
    app.wsgi_app = Forwarding(app.wsgi_app, settings.api_proxies)  # type: ignore[method-assign]
    gate = auth.Gate(parts, host or settings.api_host)
    limit = limits.RateLimit(settings.api_rate, settings.api_burst)
    app.before_request(_begin)
    app.after_request(_end)
    app.register_error_handler(Exception, _failed)
    app.extensions["curtsy_audit"] = Audit(parts)
    for one in ENDPOINTS:
        app.add_url_rule(
            re.sub(r"{(\w+)}", r"<\1>", one.path),
            endpoint=f"{one.method} {one.path}",
            view_func=_view(one, parts, gate, limit),
            methods=[one.method],
            provide_automatic_options=False,
        )
    sessions = Sessions(parts)
    site.register(app, site.Site(backend=parts, gate=gate, limit=limit, sessions=sessions, problem_of=_problem))
    return app


def _begin() -> None:
    given = request.headers.get("X-Request-Id", "")
    g.request_id = given if _REQUEST_ID.fullmatch(given) else new_id()
    g.begun = time.monotonic()
    request_id.set(g.request_id)


def _end(response: Response) -> Response:
    response.headers["X-Request-Id"] = g.request_id
    for name, value in _SAFE.items():
        response.headers.setdefault(name, value)
    seconds = time.monotonic() - g.begun
    route = request.url_rule.rule if request.url_rule is not None else ""
    backend: BackendThread = current_app.extensions["curtsy"]
    backend.count("curtsy_api_seconds", seconds, route=route or "none", status=response.status_code)
    log("api", method=request.method, route=route, status=response.status_code, ms=round(seconds * 1000, 1))
    audit: Audit = current_app.extensions["curtsy_audit"]
    audit.note(response)
    if tracing.active is not None:
        _trace(route, response)
    return response


def _trace(route: str, response: Response) -> None:
    assert tracing.active is not None
    method, status = request.method, response.status_code
    creates = (method, route, status) == ("POST", "/v1/crawls", 202)
    facts: dict[str, str | int | float | bool] = {"http.request.method": method, "http.route": route}
    facts |= {"http.response.status_code": status, "curtsy.request_id": g.request_id}
    headers = {name.lower(): value for name, value in request.headers.items()}
    tracing.active.request(g.request_id, f"{method} {route}".strip(), g.begun, facts, headers, creates)


def _view(
    endpoint: Endpoint, backend: BackendThread, gate: auth.Gate, limit: limits.RateLimit
) -> Callable[..., Response]:
    def view(**parameters: str) -> Response:
        g.endpoint = endpoint
        caller = g.caller = _admitted(endpoint, gate, limit)
        media_type = _media_type(endpoint)
        given: dict[str, Any] = dict(parameters)
        if endpoint.query is not None:
            given["query"] = _query(endpoint.query)
        if endpoint.body is not None:
            given["body"] = _body(endpoint.body, backend.settings) if media_type == JSON else None
        call = Call(
            backend=backend,
            request_id=g.request_id,
            caller=caller,
            headers={name.lower(): value for name, value in request.headers.items()},
            media_type=media_type,
            stream=_stream(endpoint, media_type, backend.settings),
        )
        status, content = settled(endpoint, endpoint.fn(call, **given))
        return _response(status, content)

    return view


def _admitted(endpoint: Endpoint, gate: auth.Gate, limit: limits.RateLimit) -> auth.Caller:
    """The authenticated caller. Failed attempts count against the rate limit of their address."""
    try:
        caller = gate.admit(request, endpoint.scope)
    except Problem:
        limit.take(request.remote_addr or "")
        raise
    if endpoint.scope is not None:
        limit.take(caller.name)
    return caller


def _media_type(endpoint: Endpoint) -> str:
    """The media type of the body; 415 if it is not declared, so that a form of a web page cannot be posted here."""
    given = request.mimetype
    if request.headers.get("Content-Encoding", "identity") != "identity" and request.method not in ("GET", "HEAD"):
        raise Problem(415, "unsupported-media-type", "Send the body without a Content-Encoding.")
    if not endpoint.media_types:
        if request.method not in ("GET", "HEAD") and given not in ("", JSON):
            raise Problem(415, "unsupported-media-type", f"Send no body, or {JSON}.")
        return ""
    if given not in endpoint.media_types or request.mimetype_params.get("charset", "utf-8").lower() != "utf-8":
        raise Problem(415, "unsupported-media-type", f"Send {' or '.join(endpoint.media_types)} in UTF-8.")
    return given


def _query(model: type[BaseModel]) -> BaseModel:
    given: dict[str, Any] = {}
    for name in request.args:
        values = request.args.getlist(name)
        given[name] = values[0] if len(values) == 1 else values
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise of_validation("query", error) from None


def _body(model: type[BaseModel], settings: Settings) -> BaseModel:
    request.max_content_length = int(settings.api_body_mb * 1_000_000)
    try:
        return model.model_validate_json(request.get_data(cache=False), strict=True)
    except ValidationError as error:
        raise of_validation("body", error) from None


def _stream(endpoint: Endpoint, media_type: str, settings: Settings) -> IO[bytes] | None:
    if media_type not in endpoint.streams:
        return None
    request.max_content_length = int(settings.api_upload_mb * 1_000_000)
    return request.stream


def _response(status: int, content: BaseModel | Stream | Download | None) -> Response:
    if content is None:
        return Response(status=status)
    if isinstance(content, Stream):
        return Response(content.chunks, status, headers=dict(content.headers), content_type=content.media_type)
    if isinstance(content, Download):
        response = Response(content.body, status, content_type=content.media_type)
        response.headers.set("Content-Disposition", "attachment", filename=content.name)
        response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
        return response
    return Response(content.model_dump_json(), status, content_type=JSON)


def _failed(error: Exception) -> Response:
    problem = _problem(error)
    declared: Endpoint | None = g.get("endpoint")
    if declared is not None:
        try:
            check(declared, problem)
        except TypeError as undeclared:
            problem = _internal_error(undeclared)
    document = problem.document(g.request_id).model_dump_json(exclude_none=True)
    return Response(document, problem.status, headers=_headers(problem), content_type=MEDIA_TYPE)


def _headers(problem: Problem) -> Mapping[str, str]:
    return {"Retry-After": str(_RETRY_S)} | problem.headers if problem.status == 503 else problem.headers


def _problem(error: Exception) -> Problem:
    """The problem document for an error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        return _http_problem(error)
    if isinstance(error, ParseException):
        return Problem(400, "bad-request", "The chunks of the body are invalid. Send it again.")
    if isinstance(error, UnknownCrawl):
        return Problem(404, "no-such-crawl", "There is no crawl with this id. GET /v1/crawls lists them.")
    if isinstance(error, UnknownRecord):
        return no_such_record()
    if isinstance(error, RefusedSeeds):
        mistakes = [Mistake(where=where, message=why) for where, why in error.refused]
        return Problem(422, "refused-seeds", "These seeds cannot be crawled. Remove them.", errors=mistakes)
    if isinstance(error, KeyReused):
        return Problem(422, "idempotency-key-reused", str(error))
    if isinstance(error, WrongState):
        return Problem(409, "wrong-state", str(error))
    if isinstance(error, UploadHeld):
        return Problem(409, "upload-under-way", str(error), headers={"Retry-After": "15"})
    if isinstance(error, UsageError):
        return Problem(422, "invalid-request", str(error))
    if isinstance(error, Unavailable):
        log("api_unavailable", level="warning", error=str(error))
        return Problem(
            503, "unavailable", "A required service does not answer. Try again later; /readyz shows which one."
        )
    if isinstance(error, SchemaMismatch):
        log("api_unavailable", level="error", error=str(error))
        return Problem(503, "unavailable", "The database has another schema version. The operator must upgrade.")
    return _internal_error(error)


def _http_problem(error: HTTPException) -> Problem:
    status = error.code or 500
    problem = of_status(status)
    if status == 404:
        problem = Problem(404, "no-such-route", "This path does not exist. See /docs.")
    if status == 405:
        allowed = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
        problem = Problem(405, "method-not-allowed", f"This path supports only {allowed}.", headers={"Allow": allowed})
    if status == 413:
        problem = Problem(413, "body-too-large", "The body is too large. Send less at a time, or send seeds as NDJSON.")
    return problem


def _internal_error(error: Exception) -> Problem:
    expected = isinstance(error, CurtsyError)
    trace = None if expected else "".join(traceback.format_exception(error))
    log("api_error", level="error", error=repr(error), trace=trace)
    return Problem(500, "internal-error", "Internal error. Please report it with its request_id.")
