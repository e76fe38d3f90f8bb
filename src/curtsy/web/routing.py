"""Endpoints are declared once: the route, the checks, the OpenAPI document and the client are generated from that.

    @endpoint("GET", "/v1/crawls/{id}/pages", scope="read")
    def list_pages(call: Call, id: str, query: PagesQuery) -> Page[PageOf]:
        \"\"\"List the pages of a crawl.\"\"\"

The signature declares the query, the body and the answer; the docstring is the documentation, its first line the
summary; the module's name is the tag. A function returns the declared model, or `(status, model)`, or a Stream or
Download; it raises Problem. An answer that is not declared is an internal error.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_type_hints

from pydantic import BaseModel

from curtsy.control import hosts as operator_hosts
from curtsy.core.errors import UnknownCrawl, UnknownSchedule
from curtsy.core.model import Crawl, Schedule
from curtsy.core.settings import Settings
from curtsy.services.backends import Services
from curtsy.store import crawls, schedules
from curtsy.store.engine import Store
from curtsy.web.backend_thread import BackendThread
from curtsy.web.problems import Problem

if TYPE_CHECKING:
    from curtsy.web.auth import Caller

T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Answer]")

Scope = Literal["read", "write", "admin"]
_CRAWL_ID = re.compile(r"[0-9a-f-]{1,36}|last")
JSON = "application/json"
NDJSON = "application/x-ndjson"

#: statuses that every endpoint may answer
_ALWAYS = (400, 403, 429, 500, 503)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A body that is sent while it is generated."""

    chunks: Iterable[bytes]
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """Bytes of a crawled page: always an attachment, so that a browser never shows it as part of this site."""

    body: bytes | Iterable[bytes]
    name: str
    media_type: str = "application/octet-stream"
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """In `answers`: a body other than a JSON model."""

    type: str
    description: str
    #: too long for memory: the typed client returns it in blocks
    streamed: bool = False


Answer = BaseModel | tuple[int, BaseModel | None] | Stream | Download | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One validated request."""

    backend: BackendThread
    request_id: str
    caller: Caller
    #: by lower-case name
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = ""
    #: the unread body, for an endpoint with `streams`
    stream: IO[bytes] | None = None

    @property
    def settings(self) -> Settings:
        return self.backend.settings

    @property
    def store(self) -> Store:
        return self.backend.store

    @property
    def services(self) -> Services | None:
        """None while the frontier is unavailable."""
        return self.backend.services_or_none

    def crawl(self, id: str) -> Crawl:
        """By its id, the beginning of its id, or `last`; without its members."""
        check_id(id)
        with self.store.read() as tx:
            return crawls.get(tx, id, members=False)

    def crawl_n(self, id: str | None) -> int | None:
        """The number of a crawl in the store; None without an id."""
        return None if id is None else self.crawl(id).n

    def schedule(self, id: str) -> Schedule:
        """By its name, its id, or the beginning of its id."""
        try:
            with self.store.read() as tx:
                return schedules.get(tx, id)
        except UnknownSchedule:
            detail = "There is no schedule with this name or id. GET /v1/schedules lists them."
            raise Problem(404, "no-such-schedule", detail) from None

    def host(self, name: str) -> str:
        """The unit of politeness that a host name or URL belongs to."""
        with self.store.read() as tx:
            return operator_hosts.resolve_host(tx, name, self.settings.politeness_unit)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it on the background loop of the process, and wait."""
        return self.backend.wait(coroutine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    method: str
    #: as in OpenAPI: /v1/crawls/{id}
    path: str
    #: None: no key is needed
    scope: Scope | None
    query: type[BaseModel] | None
    body: type[BaseModel] | None
    #: status -> model, Media, or None for no body; the first is the usual one
    answers: Mapping[int, type[BaseModel] | Media | None]
    problems: tuple[int, ...]
    tags: tuple[str, ...]
    #: media type -> description, for bodies that the function reads itself
    streams: Mapping[str, str]
    #: request headers that the function uses: name -> description
    headers: Mapping[str, str]
    fn: Callable[..., Answer]

    @property
    def name(self) -> str:
        return self.fn.__name__

    @property
    def summary(self) -> str:
        return self.description.partition("\n")[0].rstrip(".")

    @property
    def description(self) -> str:
        return inspect.getdoc(self.fn) or ""

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def media_types(self) -> tuple[str, ...]:
        return ((JSON,) if self.body is not None else ()) + tuple(self.streams)

    @property
    def all_problems(self) -> tuple[int, ...]:
        """Every status other than the answers that a caller may get."""
        found = {*_ALWAYS, *self.problems}
        if self.scope is not None:
            found.add(401)
        if self.parameters:
            found.add(404)
        if self.query is not None or self.media_types:
            found.add(422)
        if self.method != "GET":
            found.add(415)
        if self.media_types:
            found.add(413)
        return tuple(sorted(found))


ENDPOINTS: list[Endpoint] = []


def check_id(id: str) -> None:
    """Text that cannot be the id of a crawl does not reach the store."""
    if not _CRAWL_ID.fullmatch(id):
        raise UnknownCrawl(id)


def endpoint(
    method: str,
    path: str,
    *,
    scope: Scope | None,
    status: int = 200,
    answers: Mapping[int, type[BaseModel] | Media | None] | None = None,
    problems: tuple[int, ...] = (),
    tag: str | None = None,
    streams: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """Declare an endpoint. `answers` replaces `status` and the return annotation.

    `problems` lists only the statuses that the checks before the function do not raise: see `all_problems`.
    """

    def declare(fn: F) -> F:
        hints = get_type_hints(fn)
        returned = None if hints["return"] is NoneType else hints["return"]
        ENDPOINTS.append(
            Endpoint(
                method=method,
                path=path,
                scope=scope,
                query=_model(hints.get("query")),
                body=_model(hints.get("body")),
                answers=answers or {status: returned},
                problems=problems,
                tags=(tag or fn.__module__.rpartition(".")[2],),
                streams=streams or {},
                headers=headers or {},
                fn=fn,
            )
        )
        return fn

    return declare


def download(
    path: str, media_type: str, description: str, *, streamed: bool = False, problems: tuple[int, ...] = ()
) -> Callable[[F], F]:
    """Declare an endpoint that returns a file."""
    media = Media(type=media_type, description=description, streamed=streamed)
    return endpoint("GET", path, scope="read", answers={200: media}, problems=problems)


def _model(hint: Any) -> type[BaseModel] | None:
    """The model of an annotation `Model` or `Model | None`."""
    model: type[BaseModel] | None = next((one for one in get_args(hint) if one is not NoneType), hint)
    return model


def settled(endpoint: Endpoint, answer: Answer) -> tuple[int, BaseModel | Stream | Download | None]:
    """(status, content) of a function's answer. Raises TypeError if it is not declared."""
    content: BaseModel | Stream | Download | None
    if isinstance(answer, tuple):
        status, content = answer
    elif isinstance(answer, Stream | Download):
        status, content = answer.status, answer
    else:
        status, content = next(iter(endpoint.answers)), answer
    declared = endpoint.answers.get(status, ...)
    fits = (
        isinstance(content, Stream | Download)
        if isinstance(declared, Media)
        else content is None
        if declared is None
        else declared is not ... and isinstance(content, declared)
    )
    if not fits:
        raise TypeError(f"{endpoint.method} {endpoint.path} answered {status} {type(content).__name__}: not declared")
    return status, content


def check(endpoint: Endpoint, problem: Problem) -> None:
    if problem.status not in endpoint.all_problems:
        raise TypeError(f"{endpoint.method} {endpoint.path} raised {problem.status} {problem.name}: not declared")
