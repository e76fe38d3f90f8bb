"""Scrapy with the settings its manual gives for broad crawls, and its own link extractor."""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.resolver import CachingThreadedResolver
from twisted.internet.defer import Deferred, succeed

BROAD_CRAWL = {
    "CONCURRENT_REQUESTS": 100,
    "REACTOR_THREADPOOL_MAXSIZE": 20,
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    "LOG_LEVEL": "ERROR",
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "DOWNLOAD_TIMEOUT": 15,
    "DOWNLOAD_DELAY": 0,
    "TELNETCONSOLE_ENABLED": False,
}


class Loopback(CachingThreadedResolver):
    """Every name is this machine."""

    def getHostByName(self, name: str, timeout: Any = ()) -> Deferred[str]:
        return succeed("127.0.0.1")


class Everything(Spider):
    """Follows every link of the seeds' hosts."""

    name = "everything"

    def __init__(self, seeds: list[str], *, all_hosts: bool) -> None:
        super().__init__()
        self.seeds = seeds
        # One suffix that covers all hosts: the extractor walks through its domains for every link. It wants the port.
        suffix = urlsplit(seeds[0]).netloc.partition(".")[2]
        self.links = LinkExtractor() if all_hosts else LinkExtractor(allow_domains=suffix)

    async def start(self) -> AsyncIterator[Request]:
        for seed in self.seeds:
            yield Request(seed)  # Scrapy's own start() would let a home page be fetched twice

    def parse(self, response: Response) -> Iterator[Request]:
        for link in self.links.extract_links(response):
            yield Request(link.url)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", type=Path)
    parser.add_argument("--robots", action="store_true")
    parser.add_argument("--all-hosts", action="store_true", dest="all_hosts", help="the hosts are addresses")
    parser.add_argument("--per-domain", type=int, dest="per_domain", help="requests at once on one host")
    options = parser.parse_args()
    resolver = f"{__name__}.Loopback"
    settings = BROAD_CRAWL | {"ROBOTSTXT_OBEY": options.robots}
    if not options.all_hosts:
        settings["TWISTED_DNS_RESOLVER"] = resolver
    if options.per_domain is not None:
        settings["CONCURRENT_REQUESTS_PER_DOMAIN"] = options.per_domain
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(Everything)
    process.crawl(crawler, seeds=options.seeds.read_text().split(), all_hosts=options.all_hosts)
    process.start()
    assert crawler.stats is not None
    pages = crawler.stats.get_value("downloader/response_status_count/200", 0)
    robots = crawler.stats.get_value("robotstxt/response_count", 0)
    print(json.dumps({"pages": pages - robots}))


if __name__ == "__main__":
    main()
