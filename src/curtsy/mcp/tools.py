"""The tools: what a client may call, with the arguments that it may give."""

# Annotations are evaluated here, not later: some parameters of the tools have limits that are arguments of `tools_of`.

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import Field, ValidationError

from curtsy.client.backend import Backend
from curtsy.core.errors import CurtsyError
from curtsy.mcp import backends, reading

T = TypeVar("T")

#: limits of a search: pages and seconds
SEARCHED_PAGES = 2_000
SEARCH_S = 8.0
_LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)

#: URLs that `map` returns at most
MOST_URLS = 5_000
#: pages of a crawl that an answer names
_NAMED = 50

Url = Annotated[str, Field(description="The page to fetch: an http or https URL.", max_length=2083)]
MaxChars = Annotated[int, Field(description="Maximum number of characters.", ge=100, le=reading.MOST_CHARS)]
FullPage = Annotated[
    bool, Field(description="Also menus, headers, footers and related links; by default the main content only.")
]
OfCrawl = Annotated[str | None, Field(description="For a URL: the crawl to read it from; by default the newest.")]
CrawlId = Annotated[str, Field(description="Id of a crawl, the beginning of it, or `last`.", max_length=100)]
Which = Annotated[str, Field(description="Id of a stored page, or its URL.", min_length=1, max_length=4000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one call, whatever its arguments."""

    max_pages: int = 100
    max_seconds: float = 120.0

    @property
    def few_pages(self) -> int:
        return min(10, self.max_pages)

    @property
    def few_seconds(self) -> float:
        return min(60.0, self.max_seconds)

    @property
    def pages_field(self) -> Any:
        about = f"Maximum number of pages, up to {self.max_pages}."
        return Field(description=about, ge=1, le=self.max_pages)

    @property
    def seconds_field(self) -> Any:
        about = f"Maximum seconds of this call, up to {self.max_seconds:g}."
        return Field(description=about, gt=0, le=self.max_seconds)


def tools_of(backend: Backend, limits: Limits) -> list[Tool]:
    crawler = backends.crawler_of(backend)
    return [*_crawling(backend, crawler, limits), *_fetching(backend, crawler, limits), *_looking(backend)]


class _Tool(Tool):
    """A tool that rejects unknown arguments, and explains each invalid argument in one line."""

    @classmethod
    def of(cls, fn: Callable[..., Any], annotations: ToolAnnotations) -> Tool:
        made = cls.from_function(fn, annotations=annotations)
        made.parameters["additionalProperties"] = False
        return made

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        known = self.parameters["properties"]
        if unknown := [name for name in arguments if name not in known]:
            names = ", ".join(repr(name[:100]) for name in unknown[:10])
            raise ToolError(f"{self.name} has no argument {names}. It has: {', '.join(known)}.")
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError) and not isinstance(error, UnexpectedToolError):
                raise ToolError(f"{self.name}: {_unfit(error.__cause__)}") from None
            raise


def _unfit(error: ValidationError) -> str:
    """One line per field: `max_pages: should be less than or equal to 20`."""
    wrong: dict[str, list[str]] = {}
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        field = str(one["loc"][0]) if one["loc"] else "arguments"
        said = one["msg"].removeprefix("Input ").removeprefix("Value error, ")
        wrong.setdefault(field, []).append("is missing" if one["type"] == "missing" else said)
    return "\n".join(f"{field}: {', or '.join(dict.fromkeys(said))}" for field, said in wrong.items())


def _crawling(backend: Backend, crawler: backends.Crawler, limits: Limits) -> list[Tool]:
    Pages = Annotated[int, limits.pages_field]
    Seconds = Annotated[float, limits.seconds_field]

    async def crawl(
        ctx: Context[Any, Any],
        url: Annotated[str, Field(description="Where to begin: an http or https URL.", max_length=2083)],
        max_pages: Pages = limits.few_pages,
        max_seconds: Seconds = limits.few_seconds,
        max_depth: Annotated[
            int | None, Field(description="Follow at most this many links from the URL.", ge=0, le=100)
        ] = None,
        scope: Annotated[
            Literal["host", "domain"], Field(description="Follow links to this host, or to its whole domain.")
        ] = "host",
        include: Annotated[
            list[str] | None, Field(description="Only URLs that match one of these (RE2).", max_length=10)
        ] = None,
        name: Annotated[str | None, Field(description="Name of the crawl.", max_length=200)] = None,
        tags: Annotated[list[str] | None, Field(description="Tags for searching.", max_length=20)] = None,
    ) -> dict[str, Any]:
        """Crawl a site from a URL politely: it obeys robots.txt and rate limits, and never requests private addresses.

        Returns the crawl's id, its counts and its first pages. If its time is up, continue with `resume`.
        """
        options = {
            "max_pages": max_pages, "max_depth": max_depth, "scope": scope, "include": include or [], "name": name,
            "tags": tags or [],
        }  # fmt: skip
        with _Progress(ctx, max_pages) as told:
            id = await _work(crawler.crawl, [url], options, max_seconds, told)
        return await _came_of(backend, id)

    async def resume(
        ctx: Context[Any, Any], crawl: CrawlId, max_seconds: Seconds = limits.few_seconds
    ) -> dict[str, Any]:
        """Continue a crawl whose time was up, until its own max_pages."""
        with _Progress(ctx, None) as told:
            id = await _work(crawler.resume, crawl, max_seconds, told)
        return await _came_of(backend, id)

    return [_Tool.of(fn, _ASKS) for fn in (crawl, resume)]


def _fetching(backend: Backend, crawler: backends.Crawler, limits: Limits) -> list[Tool]:
    Pages = Annotated[int, limits.pages_field]
    Seconds = Annotated[float, limits.seconds_field]

    async def scrape(
        ctx: Context[Any, Any],
        url: Url,
        max_chars: MaxChars = 20_000,
        full_page: FullPage = False,
        max_seconds: Seconds = limits.few_seconds,
    ) -> dict[str, Any]:
        """Fetch one page politely and return it as Markdown, with its title, status and time.

        It obeys robots.txt and rate limits like `crawl`. `read_page` with `next_offset` returns the rest.
        """
        options = {"max_pages": 1, "max_depth": 0, "sitemaps": False}
        with _Progress(ctx, 1) as told:
            id = await _work(crawler.crawl, [url], options, max_seconds, told)
        found = await _work(backends.only_page, backend, id, url)
        return await _work(reading.piece, found, 0, max_chars, full_page)

    async def map(
        ctx: Context[Any, Any],
        url: Annotated[str, Field(description="A page of the site: an http or https URL.", max_length=2083)],
        limit: Annotated[int, Field(description="Maximum number of URLs.", ge=1, le=MOST_URLS)] = 500,
        max_pages: Pages = limits.few_pages,
        max_seconds: Seconds = limits.few_seconds,
    ) -> dict[str, Any]:
        """The URLs of a site: from its sitemaps and from the links of some pages, which are fetched politely.

        `state` is `done` for fetched pages and `open` for URLs that are only known. `crawl` fetches more of them.
        """
        options = {"max_pages": max_pages, "scope": "host", "sitemaps": True}
        with _Progress(ctx, max_pages) as told:
            id = await _work(crawler.crawl, [url], options, max_seconds, told)
        found = await _work(backends.status, backend, id)
        return {"note": reading.UNTRUSTED, **found, "urls": await _work(backends.known_urls, backend, id, limit)}

    return [_Tool.of(fn, _ASKS) for fn in (scrape, map)]


async def _came_of(backend: Backend, id: str) -> dict[str, Any]:
    found = await _work(backends.status, backend, id)
    pages = await _work(backend.pages, id, _NAMED)
    named = [{name: page[name] for name in ("id", "url", "title")} for page in pages]
    return {"note": reading.UNTRUSTED, **found, "first_pages": named}


class _Progress:
    """Reports progress from the waiting thread to the client; returns False once the client has gone."""

    def __init__(self, ctx: Context[Any, Any], total: int | None) -> None:
        self._ctx, self._total, self._last = ctx, total, -1
        self._loop = asyncio.get_running_loop()
        self._waits = True

    def __call__(self, pages: int) -> bool:
        if self._waits and pages != self._last:
            self._last = pages
            told = self._ctx.report_progress(pages, self._total, f"{pages} pages")
            asyncio.run_coroutine_threadsafe(told, self._loop)
        return self._waits

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self._waits = False


def _looking(backend: Backend) -> list[Tool]:
    async def status(crawl: CrawlId = "last") -> dict[str, Any]:
        """The progress of a crawl: its state, and its URLs by outcome."""
        return await _work(backends.status, backend, crawl)

    async def read_page(
        page: Which,
        crawl: OfCrawl = None,
        offset: Annotated[int, Field(description="`next_offset` of the answer before.", ge=0)] = 0,
        max_chars: MaxChars = 20_000,
        full_page: FullPage = False,
    ) -> dict[str, Any]:
        """A stored page as Markdown, in pieces: its main content. The page is not fetched again."""
        found = await _work(backends.read, backend, page, crawl)
        return await _work(reading.piece, found, offset, max_chars, full_page)

    async def search_pages(
        query: Annotated[
            str, Field(description="Words that a page must have, all of them.", min_length=1, max_length=500)
        ],
        crawl: Annotated[str | None, Field(description="Search only this crawl.", max_length=100)] = None,
        limit: Annotated[int, Field(description="Maximum number of pages.", ge=1, le=50)] = 10,
        go_on: Annotated[
            str | None, Field(description="`go_on` of the answer before: the next pages.", max_length=2000)
        ] = None,
    ) -> dict[str, Any]:
        """Search stored pages by words, best first. There is no index: stored pages are searched, newest first.

        One call searches at most 2,000 pages and 8 s. If there are more, `complete` is false, `cut_short` says how many
        pages the answer covers, and `go_on` continues the search.
        """

        def look() -> dict[str, Any]:
            found = backends.scan(backend, crawl, go_on)
            return reading.search(found, query, limit, SEARCHED_PAGES, SEARCH_S, lambda: backend.count_pages(crawl))

        return await _work(look)

    async def extract(
        page: Which,
        schema: Annotated[
            str | dict[str, Any],
            Field(description="`page` (title, headings, structured data), another built-in name, or a JSON Schema."),
        ] = "page",
        crawl: OfCrawl = None,
    ) -> dict[str, Any]:
        """Structured data of a stored page: each value with the text of the page that supports it.

        Values that the page does not support are withheld. It uses no language model.
        """
        found = await _work(backends.read, backend, page, crawl)
        return await _work(reading.facts_of, found, schema)

    return [_Tool.of(fn, _LOOKS) for fn in (status, read_page, search_pages, extract)]


async def _work(fn: Callable[..., T], *args: Any) -> T:
    """Run it in a thread. An expected error becomes one sentence for the client."""
    try:
        return await asyncio.to_thread(fn, *args)
    except ValidationError as error:
        raise ToolError(_unfit(error)) from error
    except CurtsyError as error:
        raise ToolError(str(error)) from error
