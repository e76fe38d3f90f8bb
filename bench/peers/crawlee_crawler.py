"""Crawlee's HttpCrawler with lexbor as parser: memory storage, no sessions, no retries, its default HTTP client.

Its client resolves names in native code, so the names are mapped by using nginx as the forward proxy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import ada_url
from crawlee import ConcurrencySettings
from crawlee.crawlers import AbstractHttpCrawler, AbstractHttpParser, ParsedHttpCrawlingContext
from crawlee.crawlers._types import BlockedInfo
from crawlee.http_clients import HttpResponse, ImpitHttpClient
from crawlee.storage_clients import MemoryStorageClient
from selectolax.lexbor import LexborHTMLParser, LexborNode


class LexborParser(AbstractHttpParser[LexborHTMLParser, LexborNode]):
    async def parse(self, response: HttpResponse) -> LexborHTMLParser:
        return LexborHTMLParser(await response.read())

    async def parse_text(self, text: str) -> LexborHTMLParser:
        return LexborHTMLParser(text)

    async def select(self, parsed_content: LexborHTMLParser, selector: str) -> Sequence[LexborNode]:
        return parsed_content.css(selector)

    def is_blocked(self, parsed_content: LexborHTMLParser) -> BlockedInfo:
        return BlockedInfo(reason="")

    def is_matching_selector(self, parsed_content: LexborHTMLParser, selector: str) -> bool:
        return parsed_content.css_matches(selector)

    def find_links(self, parsed_content: LexborHTMLParser, selector: str, attribute: str) -> Iterable[str]:
        return [href for node in parsed_content.css(selector) if (href := node.attributes.get(attribute))]


Context = ParsedHttpCrawlingContext[LexborHTMLParser]


async def follow(context: Context) -> None:
    # Every link of the synthetic site leads to a host of the site, so no narrower strategy is needed.
    await context.enqueue_links(strategy="all")


async def follow_own(context: Context) -> None:
    await context.enqueue_links(strategy="same-hostname")


class FollowNew:
    """Joins and deduplicates before Crawlee makes a request object of every link."""

    def __init__(self, seeds: list[str]) -> None:
        self._seen = set(seeds)

    async def __call__(self, context: Context) -> None:
        base = context.request.url
        urls = {
            ada_url.join_url(base, href)
            for node in context.parsed_content.css("a")
            if (href := node.attributes["href"])
        }
        if new := urls - self._seen:
            self._seen |= new
            await context.add_requests(sorted(new))


async def crawl(seeds: list[str], concurrency: int, *, robots: bool, dedup: bool, own: bool, direct: bool) -> int:
    crawler_class = AbstractHttpCrawler.create_parsed_http_crawler_class(LexborParser())
    proxy = None if direct else f"http://127.0.0.1:{urlsplit(seeds[0]).port}"
    crawler = crawler_class(
        http_client=ImpitHttpClient(proxy=proxy, persist_cookies_per_session=False, verify=not direct),
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=concurrency, desired_concurrency=concurrency, max_concurrency=concurrency
        ),
        use_session_pool=False,
        retry_on_blocked=False,
        max_request_retries=0,
        configure_logging=False,
        respect_robots_txt_file=robots,
    )

    crawler.router.default_handler(FollowNew(seeds) if dedup else follow_own if own else follow)
    statistics = await crawler.run(seeds)
    return int(statistics.requests_finished)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", type=Path)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--robots", action="store_true")
    parser.add_argument("--dedup", action="store_true")
    parser.add_argument("--own-hosts", action="store_true", dest="own", help="follow no link to another host")
    parser.add_argument("--direct", action="store_true", help="the hosts are addresses whose certificates are unknown")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    seeds = options.seeds.read_text().split()
    choices = {"robots": options.robots, "dedup": options.dedup, "own": options.own, "direct": options.direct}
    crawling = crawl(seeds, options.concurrency, **choices)
    print(json.dumps({"pages": asyncio.run(crawling)}))


if __name__ == "__main__":
    main()
