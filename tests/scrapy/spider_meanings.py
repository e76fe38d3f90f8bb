"""Spiders that use what Scrapy offers; each yields what it saw of it. They know nothing of the frontier.

Copied into a project that Scrapy made; the site's address is in QUOTES_SITE.
"""

# ruff: noqa: RUF012  # as people write them

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import FormRequest, JsonRequest, Response
from scrapy.spiders import SitemapSpider

SITE = os.environ["QUOTES_SITE"]
PORT = SITE.rpartition(":")[2]


class Following(scrapy.Spider):
    """response.follow and follow_all, cb_kwargs, meta that is passed on, the depth's limit, the referrer, offsite."""

    name = "following"
    allowed_domains = ["127.0.0.1"]
    start_urls = [f"{SITE}/deep/0", f"{SITE}/moved"]
    custom_settings = {"DEPTH_LIMIT": 3}

    def parse(self, response: Response, way: tuple[str, ...] = (), seen: dict[str, Any] | None = None) -> Iterator[Any]:
        depth = response.meta["depth"]
        yield {"url": response.url, "way": way, "seen": seen, "depth": depth, "mark": response.meta.get("mark")}
        yield from response.follow_all(
            css="a[href^='/deep']", callback=self.parse, meta={**response.meta, "mark": str(depth)},
            cb_kwargs={"way": (*way, response.url), "seen": {"at": [depth]}},
        )  # fmt: skip
        if response.url.endswith("/deep/1"):
            yield response.follow("/echo?a", self.heard, headers={"X-Word": "goose"})
            yield response.follow(f"http://localhost:{PORT}/elsewhere", self.parse)
            yield response.follow("/forbidden", self.parse)

    def heard(self, response: Response) -> Iterator[Any]:
        yield response.json()


class Failing(scrapy.Spider):
    """Errbacks: of a status, of a connection that nobody takes, after retries; and what an errback asks for."""

    name = "failing"
    handle_httpstatus_list = [404]
    custom_settings = {"RETRY_TIMES": 1, "DOWNLOAD_TIMEOUT": 5, "ROBOTSTXT_OBEY": False}

    async def start(self) -> AsyncIterator[Any]:
        given = {"callback": self.parse, "errback": self.failed}
        yield scrapy.Request(f"{SITE}/nowhere", **given)
        yield scrapy.Request(f"{SITE}/login?", method="PUT", **given)
        yield scrapy.Request("http://127.0.0.1:1/", cb_kwargs={"why": "nobody is there"}, **given)
        yield scrapy.Request(f"{SITE}/flapping", **given)
        yield {"of": "start, without a request"}

    def parse(self, response: Response, why: str = "") -> Iterator[Any]:
        timeout = response.meta["download_timeout"]
        yield {"url": response.url, "status": response.status, "why": why, "timeout": timeout}

    def failed(self, failure: Any) -> Iterator[Any]:
        request = failure.request
        yield {"failed": request.url, "kind": failure.type.__name__, "kwargs": request.cb_kwargs}
        yield scrapy.Request(f"{SITE}/page/2", self.parse)


class Telling(scrapy.Spider):
    """Forms and JSON by POST, a form of a page, headers and cookies of requests, bodies."""

    name = "telling"

    async def start(self) -> AsyncIterator[Any]:
        apart = {"cookiejar": "apart"}
        yield FormRequest(f"{SITE}/form", formdata={"a": "1", "b": "zwei"}, callback=self.heard, meta=apart)
        yield JsonRequest(f"{SITE}/json", data={"c": [1, 2]}, callback=self.heard, meta=apart)
        yield scrapy.Request(f"{SITE}/echo?b", self.heard, cookies={"own": "1"}, meta={"cookiejar": "own"})
        told = {"method": "POST", "body": b"plain", "headers": {"X-Word": "bell"}, "meta": apart}
        yield scrapy.Request(f"{SITE}/echo", self.heard, **told)
        yield scrapy.Request(f"{SITE}/login", self.form)

    def heard(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, **response.json()}

    def form(self, response: Response) -> Iterator[Any]:
        yield FormRequest.from_response(response, formdata={"user": "ada"}, callback=self.member)

    def member(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "title": response.css("title::text").get(), "by": response.meta["redirect_urls"]}
        yield from response.follow_all(css="a", callback=self.parse)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a", callback=self.parse)


class Sessions(scrapy.Spider):
    """Several sessions of one site at once, each in its jar."""

    name = "sessions"

    async def start(self) -> AsyncIterator[Any]:
        for who in "abc":
            yield scrapy.Request(f"{SITE}/session?who={who}", self.parse, meta={"cookiejar": who})

    def parse(self, response: Response) -> Iterator[Any]:
        jar = response.meta["cookiejar"]
        yield scrapy.Request(f"{SITE}/echo?c", self.heard, meta={"cookiejar": jar}, dont_filter=True)

    def heard(self, response: Response) -> Iterator[Any]:
        yield {"jar": response.meta["cookiejar"], "cookie": response.json()["cookie"]}


class Again(scrapy.Spider):
    """Duplicates: filtered among start requests and links, and not where `dont_filter` says so."""

    name = "again"
    custom_settings = {"CONCURRENT_REQUESTS": 0}

    async def start(self) -> AsyncIterator[Any]:
        for _ in range(2):
            yield scrapy.Request(f"{SITE}/self")
        for number in range(3):
            yield scrapy.Request(f"{SITE}/page/3", self.counted, dont_filter=True, cb_kwargs={"number": number})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        yield from response.follow_all(css="a", callback=self.parse)
        for number in range(2):
            yield response.follow("/page/2", self.counted, dont_filter=True, cb_kwargs={"number": number})
            yield response.follow("/page/1", self.counted, cb_kwargs={"number": 0})

    def counted(self, response: Response, number: int) -> Iterator[Any]:
        yield {"url": response.url, "number": number}


class OldAndNew(scrapy.Spider):
    """As a spider for older versions too begins: both ways, of which each version knows one."""

    name = "old_and_new"

    async def start(self) -> AsyncIterator[Any]:
        for request in self.start_requests():
            yield request

    def start_requests(self) -> Iterator[Any]:
        for number in (1, 2):
            yield scrapy.Request(f"{SITE}/page/{number}", meta={"number": number})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "number": response.meta["number"], "start": response.meta["is_start_request"]}


class Waiting(scrapy.Spider):
    """A callback that waits for a download of its own; a lambda; a start page that is nowhere."""

    name = "waiting"
    start_urls = ["data:,geese", f"{SITE}/page/1"]

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        assert self.crawler.engine is not None
        other = await self.crawler.engine.download_async(scrapy.Request(f"{SITE}/author/cy-marsh"))
        yield {"url": response.url, "other": other.css(".name::text").get(), "size": len(response.body)}
        yield scrapy.Request(f"{SITE}/page/2", lambda found: {"by": "a lambda", "url": found.url})


class Ordered(scrapy.Spider):
    """Priorities."""

    name = "ordered"
    start_urls = [f"{SITE}/order"]

    def parse(self, response: Response) -> Iterator[Any]:
        for number, priority in enumerate((0, 5, -5, 0, 5, 10, -5, 0, 1)):
            yield response.follow(f"/order/{number}", self.page, priority=priority)

    def page(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


class Mapped(SitemapSpider):  # type: ignore[misc]
    """By the site's map."""

    name = "mapped"
    sitemap_urls = [f"{SITE}/sitemap.xml"]
    sitemap_rules = [("/author/", "author"), ("/page/", "page")]

    def author(self, response: Response) -> Iterator[Any]:
        yield {"author": response.css(".name::text").get()}

    def page(self, response: Response) -> Iterator[Any]:
        yield {"page": response.url}


class Membership(scrapy.Spider):
    """A login, then page after page that only members see; it counts them in the state of its job."""

    name = "membership"
    start_urls = [f"{SITE}/login"]

    def parse(self, response: Response) -> Iterator[Any]:
        yield FormRequest.from_response(response, formdata={"user": "ada"}, callback=self.member)

    def member(self, response: Response) -> Iterator[Any]:
        state: dict[str, int] = self.state  # type: ignore[attr-defined]
        state["pages"] = state.get("pages", 0) + 1
        yield {"title": response.css("title::text").get(), "pages": state["pages"]}
        yield from response.follow_all(css="a", callback=self.member)
