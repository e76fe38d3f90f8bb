"""A spider as people write them, for organisations of the tiny web: callbacks, meta, priorities, items.

Run by `scrapy runspider`; it knows nothing of the frontier, its settings do.
"""

import socket

import scrapy

_ask = socket.getaddrinfo


def _lead_home(host, *args, **options):  # type: ignore[no-untyped-def]
    return _ask("127.0.0.1" if str(host).endswith(".test") else host, *args, **options)


socket.getaddrinfo = _lead_home
socket.gethostbyname = lambda _host: "127.0.0.1"


class Organisations(scrapy.Spider):
    name = "organisations"

    def __init__(self, port, hosts="org-0000,org-0001", **options):  # type: ignore[no-untyped-def]
        super().__init__(**options)
        self.start_urls = [f"http://{host}.tinyweb.test:{port}/" for host in hosts.split(",")]

    def parse(self, response):  # type: ignore[no-untyped-def]
        yield {"url": response.url, "by": "parse", "from": None}
        for href in response.css("a::attr(href)").getall():
            if href.startswith("/"):
                yield response.follow(href, self.parse_page, meta={"origin": response.url}, priority=1)

    def parse_page(self, response):  # type: ignore[no-untyped-def]
        yield {"url": response.url, "by": "parse_page", "from": response.meta["origin"]}
        for href in response.css("a::attr(href)").getall():
            if href.startswith("/"):
                yield response.follow(href, self.parse_page, meta={"origin": response.url})
