"""Scrapy's CrawlSpider as its manual shows it: one rule that follows every link of the seeds' hosts."""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule
from scrapy_spider import BROAD_CRAWL


class Sites(CrawlSpider):
    """Follows every link of the seeds' hosts, and stores nothing."""

    name = "sites"
    rules = (Rule(LinkExtractor(), callback="keep", follow=True),)

    def __init__(self, seeds: list[str]) -> None:
        self.seeds = seeds
        self.allowed_domains = [str(urlsplit(seed).hostname) for seed in seeds]
        super().__init__()

    async def start(self) -> AsyncIterator[Request]:
        for seed in self.seeds:
            yield Request(seed)

    def keep(self, response: Response) -> None:
        """A page has arrived."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", type=Path)
    parser.add_argument("--per-host", type=int, default=8)
    options = parser.parse_args()
    more = {
        "ROBOTSTXT_OBEY": True,
        "TWISTED_DNS_RESOLVER": "scrapy_spider.Loopback",
        "CONCURRENT_REQUESTS_PER_DOMAIN": options.per_host,
        "REDIRECT_ENABLED": True,
    }
    process = CrawlerProcess(BROAD_CRAWL | more)
    crawler = process.create_crawler(Sites)
    process.crawl(crawler, seeds=options.seeds.read_text().split())
    process.start()
    assert crawler.stats is not None
    print(json.dumps({"pages": crawler.stats.get_value("downloader/response_status_count/200", 0)}))


if __name__ == "__main__":
    main()
