"""The spider of the comparison with scrapy-redis: the same for both, only settings differ."""

import socket

import scrapy

_ask = socket.getaddrinfo
socket.getaddrinfo = lambda host, *args, **options: _ask(
    "127.0.0.1" if str(host).endswith(".test") else host, *args, **options
)
socket.gethostbyname = lambda _host: "127.0.0.1"


class Organisations(scrapy.Spider):
    name = "organisations"

    def __init__(self, port, hosts, **options):
        super().__init__(**options)
        self.start_urls = [f"http://org-{number:04d}.tinyweb.test:{port}/" for number in range(int(hosts))]

    def parse(self, response):
        yield {"url": response.url}
        for href in response.css("a::attr(href)").getall():
            if href.startswith("/"):
                yield response.follow(href, self.parse)
