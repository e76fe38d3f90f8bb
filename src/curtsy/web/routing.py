"""Endpoints are declared once: the route, the checks, the OpenAPI document and docs/reference/api.md come from that.

    @endpoint("GET", "/v1/crawls/{id}", scope="read", answers={200: CrawlStatus}, problems=(404,), tags=("crawls",))
    def crawl(call: Call, id: str) -> CrawlStatus:
        \"\"\"How far a crawl is.\"\"\"

The docstring is the documentation: its first line the summary. A function answers a model (the first of `answers`), or
`(status, model)`, or a Stream or Download; it raises Problem. An answer that is not declared is an error of ours.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel

from curtsy.control import hosts as operator_hosts
from curtsy.core.errors import UnknownCrawl
from curtsy.core.model import Crawl
from curtsy.core.settings import Settings
from curtsy.services.backends import Services
from curtsy.store import crawls
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

#: may come from any endpoint
_ALWAYS = (400, 403, 429, 500, 503)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A body that is written while it is made."""

    chunks: Iterable[bytes]
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """Bytes of somebody else's page: always an attachment, never shown by a browser as part of this site."""

    body: bytes | Iterable[bytes]
    name: str
    media_type: str = "application/octet-stream"
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """In `answers`: a body that is no JSON model."""

    type: str
    description: str


Answer = BaseModel | tuple[int, BaseModel | None] | Stream | Download | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, checked."""

    bridge: BackendThread
    request_id: str
    #: who asks
    key: Caller
    #: an instance of the declared model; None where none is declared
    query: Any
    body: Any
    #: by lower-case name
    headers: Mapping[str, str]
    media_type: str = ""
    #: the body of an endpoint with `streams`, unread
    stream: IO[bytes] | None = None

    @property
    def settings(self) -> Settings:
        return self.bridge.settings

    @property
    def store(self) -> Store:
        return self.bridge.store

    @property
    def services(self) -> Services | None:
        """None while the frontier is away; `need_services` where nothing can be done without it."""
        return self.bridge.services_or_none

    def need_services(self) -> Services:
        return self.bridge.services

    def crawl(self, id: str) -> Crawl:
        """By its id, the beginning of one, or `last`; without its members."""
        check_id(id)
        with self.store.read() as tx:
            return crawls.get(tx, id, members=False)

    def host(self, name: str) -> str:
        """The unit of politeness that somebody means by a host's name or a URL."""
        with self.store.read() as tx:
            return operator_hosts.host_meant(tx, name, self.settings.politeness_unit)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it on the process's background loop, and wait."""
        return self.bridge.wait(coroutine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    method: str
    #: as in OpenAPI: /v1/crawls/{id}
    path: str
    #: None: anybody, without a key
    scope: Scope | None
    query: type[BaseModel] | None
    body: type[BaseModel] | None
    #: status -> model, Media, or None for no body; the first is the usual one
    answers: Mapping[int, type[BaseModel] | Media | None]
    problems: tuple[int, ...]
    tags: tuple[str, ...]
    #: media type -> description of bodies that the function reads itself
    streams: Mapping[str, str]
    #: request headers that mean something: name -> description
    headers: Mapping[str, str]
    fn: Callable[..., Answer]

    @property
    def name(self) -> str:
        return self.fn.__name__

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.fn) or "").partition("\n")[0].rstrip(".")

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
    """What cannot be the id of a crawl does not reach the store."""
    if not _CRAWL_ID.fullmatch(id):
        raise UnknownCrawl(id)


def endpoint(
    method: str,
    path: str,
    *,
    scope: Scope | None,
    query: type[BaseModel] | None = None,
    body: type[BaseModel] | None = None,
    answers: Mapping[int, type[BaseModel] | Media | None],
    problems: tuple[int, ...] = (),
    tags: tuple[str, ...] = (),
    streams: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """Declare an endpoint. `scope=None` serves anybody.

    Of the problems those need no mention that come from the checks before the function: see `all_problems`.
    """

    def declare(fn: F) -> F:
        ENDPOINTS.append(
            Endpoint(
                method=method,
                path=path,
                scope=scope,
                query=query,
                body=body,
                answers=answers,
                problems=problems,
                tags=tags,
                streams=streams or {},
                headers=headers or {},
                fn=fn,
            )
        )
        return fn

    return declare


def settled(endpoint: Endpoint, answer: Answer) -> tuple[int, BaseModel | Stream | Download | None]:
    """(status, content) of what a function answered. What is not declared may not leave."""
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
