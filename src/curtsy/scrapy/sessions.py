"""Stores cookies with requests, so that they reach another process or survive a restart.

A session lives in a jar of Scrapy's cookie middleware, in one process. A stored request includes the cookies of its jar
for its host at that time; the process that runs it adds them to its own jar, without replacing newer ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from http.cookiejar import Cookie
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http.cookies import potential_domain_matches
from scrapy.utils.httpobj import urlparse_cached

#: the maximum number of cookies stored with a request
_MOST = 50


class Sessions:
    """The cookie jars of one spider; empty if cookies are disabled."""

    def __init__(self, crawler: Crawler) -> None:
        middlewares = middlewares_of(crawler)
        self._jars: dict[Any, Any] | None = next(
            (one.jars for one in middlewares if isinstance(one, CookiesMiddleware)), None
        )

    def of(self, request: Request) -> list[Cookie]:
        jar = self._jar(request)
        if not jar:
            return []
        names = _domains(urlparse_cached(request).hostname or "")
        paths = [path for name in names for path in jar._cookies.get(name, {}).values()]
        return [cookie for path in paths for cookie in path.values()][:_MOST]

    def add(self, request: Request, cookies: Iterable[Cookie]) -> None:
        if self._jars is None or request.meta.get("dont_merge_cookies"):
            return
        for cookie in cookies:
            jar = self._jars[request.meta.get("cookiejar")]
            if cookie.name not in jar._cookies.get(cookie.domain, {}).get(cookie.path, {}):
                jar.set_cookie(cookie)

    def _jar(self, request: Request) -> Any:
        if self._jars is None or request.meta.get("dont_merge_cookies"):
            return None
        return self._jars.get(request.meta.get("cookiejar"))


def middlewares_of(crawler: Crawler) -> list[Any]:
    """The downloader middlewares."""
    downloader = getattr(crawler.engine, "downloader", None)
    return list(getattr(getattr(downloader, "middleware", None), "middlewares", ()))


def _domains(host: str) -> list[str]:
    """The domains under which a jar may have cookies for this host."""
    if not host:
        return []
    more = [] if "." in host else potential_domain_matches(f"{host}.local")
    return list(dict.fromkeys([host, f".{host}", *potential_domain_matches(host), *more]))
