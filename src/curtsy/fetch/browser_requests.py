"""The request filter: our own guarded fetcher answers every request of a page in the browser, or refuses it.

Within a visit, the page's own host gets one request at a time, other hosts two. All obey the guard, robots.txt, the
visit's deadline and its budgets. Redirects are followed here, hop by hop, because the browser would bypass the filter
(and fail, because it has no network).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from curtsy.core.outcome import Fault, Outcome, Subresource
from curtsy.core.settings import Settings
from curtsy.fetch.asset_cache import KINDS, AssetCache
from curtsy.fetch.headers import Headers
from curtsy.fetch.third_party_robots import ThirdPartyRobots
from curtsy.fetch.transfer import FetchJob, boot_clock
from curtsy.rules.decide import redirect_target
from curtsy.rules.urls import host_key, normalise, origin

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page, Request, Route

#: whether robots.txt allows a URL for an agent; None: unknown
Allows = Callable[[str, str], bool | None]
#: makes one request; its end is reported even if the caller no longer waits
Send = Callable[[FetchJob, Callable[[Outcome], None]], Awaitable[Outcome]]

_OWN_KINDS = frozenset(("document", "script", "stylesheet", "xhr", "fetch"))
_OTHER_KINDS = frozenset(("script", "stylesheet", "xhr", "fetch"))
_MAX_OWN = 60
_MAX_OTHER = 60
_AT_A_TIME = 2
_MAX_HOPS = 5
_MAX_RELOADS = 3
_MAX_ROBOTS_HOSTS = 20

#: hosts of analytics: no content of a page comes from there
_TRACKERS = frozenset((
    "google-analytics.com", "googletagmanager.com", "doubleclick.net", "googlesyndication.com",
    "googleadservices.com", "facebook.net", "hotjar.com", "hotjar.io", "segment.io", "segment.com", "mixpanel.com",
    "amplitude.com", "fullstory.com", "clarity.ms", "newrelic.com", "nr-data.net", "scorecardresearch.com",
    "quantserve.com", "criteo.com", "criteo.net", "taboola.com", "outbrain.com", "adnxs.com", "matomo.cloud",
    "plausible.io", "sentry.io", "bugsnag.com", "mouseflow.com", "crazyegg.com", "optimizely.com", "adsrvr.org",
    "branch.io", "chartbeat.com", "chartbeat.net", "heapanalytics.com", "moatads.com", "onetrust.com",
    "cookielaw.org", "bat.bing.com", "analytics.tiktok.com", "snap.licdn.com", "px.ads.linkedin.com",
))  # fmt: skip

#: request headers that we set ourselves, or never send
_NOT_PASSED_ON = frozenset((
    "host", "connection", "content-length", "user-agent", "accept-encoding", "accept-language", "cookie", "te",
    "upgrade-insecure-requests", "cache-control", "pragma", "trailer", "transfer-encoding", "upgrade", "expect",
    "keep-alive", "purpose",
))  # fmt: skip
#: response headers about a connection that the browser does not have
_NOT_GIVEN = frozenset((
    "content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive", "alt-svc",
    "strict-transport-security", "trailer", "upgrade",
))  # fmt: skip
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+\Z")
_VALUE = re.compile(r"[ -~\t]*\Z")
#: headers of the job that concern the page alone
_OF_THE_PAGE = frozenset(("if-none-match", "if-modified-since", "cookie", "accept"))


class Gate:
    """The gate of one visit. Requests after `shut` are refused."""

    def __init__(
        self, job: FetchJob, main: Outcome, until: float, settings: Settings,
        send: Send, allows: Allows, third_parties: ThirdPartyRobots, assets: AssetCache,
    ) -> None:  # fmt: skip
        self._job, self._main, self._settings = job, main, settings
        #: boot clock; nothing is sent after it
        self.until = until
        self._send, self._allows, self._third_parties, self._assets = send, allows, third_parties, assets
        self._own_host = host_key(job.url, settings.politeness_unit)
        self._own_turn = asyncio.Lock()
        self._other_turns = asyncio.Semaphore(_AT_A_TIME)
        self._context: BrowserContext | None = None
        self._page: Page | None = None
        self._main_url: str | None = None
        self._given = self._own = self._other = 0
        self._robots_hosts: set[str] = set()
        self._pending: set[asyncio.Task[Any]] = set()
        self._shut = False
        self._quiet_since = boot_clock()
        self.log: list[Subresource] = []
        #: where a script or meta refresh wanted to navigate
        self.led_to: str | None = None

    async def install(self, context: BrowserContext) -> None:
        self._context = context
        await context.route("**/*", self.on_route)

    def watch(self, page: Page) -> None:
        self._page = page

    async def shut(self) -> None:
        """Refuse everything from now on, abort requests in flight, and wait for their end."""
        self._shut = True
        for task in self._pending:
            task.cancel()
        if self._pending:
            await asyncio.wait(self._pending)

    @property
    def quiet_s(self) -> float:
        """How long no request was made or awaited."""
        return 0.0 if self._pending else boot_clock() - self._quiet_since

    async def on_route(self, route: Route, request: Request) -> None:
        task = asyncio.current_task()
        if self._shut or task is None:
            await _abort(route)
            return
        self._pending.add(task)
        try:
            await self._answer(route, request)
        except asyncio.CancelledError:
            await _abort(route)  # canceled by `shut`: the context is about to be closed
        except Exception:
            # The page, its context or the browser was closed meanwhile, or the request cannot be read.
            await _abort(route)
        finally:
            self._pending.discard(task)
            self._quiet_since = boot_clock()

    async def _answer(self, route: Route, request: Request) -> None:
        if self._is_main(request):
            await self._answer_main(route, request.url)
            return
        outcome = await self._load(request)
        if outcome is None or not outcome.status:
            await _abort(route)
        else:
            await route.fulfill(status=outcome.status, headers=_for_browser(outcome.headers), body=outcome.body)

    # The page itself.

    def _is_main(self, request: Request) -> bool:
        if not request.is_navigation_request():
            return False
        if self._page is None:
            return self._main_url is None
        return request.frame == self._page.main_frame

    async def _answer_main(self, route: Route, url: str) -> None:
        """The page's own response is available already, also for a repeated request. Other navigations are refused."""
        if self._main_url is None:
            self._main_url = url
        self._given += 1
        if url != self._main_url or self._given > _MAX_RELOADS:
            self.led_to = url
            await _abort(route, "aborted")  # the browser keeps the current document
            return
        main = self._main
        await route.fulfill(status=main.status, headers=_for_browser(main.headers), body=main.body)

    # What it loads.

    async def _load(self, request: Request) -> Outcome | None:
        """None: refused."""
        url, kind, method = normalise(request.url), request.resource_type, request.method
        if url is None or method not in ("GET", "POST") or (method == "POST" and kind not in ("xhr", "fetch")):
            return None
        body = (request.post_data_buffer or b"") if method == "POST" else None
        said = tuple((name, value) for name, value in request.headers.items() if _is_passed_on(name))
        for _ in range(_MAX_HOPS + 1):
            outcome = await self._hop(url, kind, said, body)
            target = redirect_target(outcome) if outcome is not None and 300 <= outcome.status < 400 else None
            if outcome is None or target is None or outcome.status == 304:
                return outcome
            if body is not None and outcome.status not in (307, 308):
                body = None
                said = tuple(pair for pair in said if pair[0] != "content-type")
            if origin(target) != origin(url):
                said = tuple(pair for pair in said if pair[0] != "authorization")
            url = target
        return None

    async def _hop(self, url: str, kind: str, said: Headers, body: bytes | None) -> Outcome | None:
        own = self._is_own(url)
        if kind not in (_OWN_KINDS if own else _OTHER_KINDS) or self._is_denied(url):
            return None
        headers = await self._headers(url, said)
        # A static file does not depend on the asking page; headers of the job may change it.
        key = (url, self._job.proxy_pool, tuple(p for p in headers if p[0] not in ("referer", "origin", "accept")))
        static = kind in KINDS and body is None
        if static and (kept := self._assets.get(key, boot_clock())) is not None:
            return kept
        if not await self._is_allowed(url):
            return None
        async with self._own_turn if own else self._other_turns:
            # Another frame may have fetched the same file meanwhile.
            if static and (kept := self._assets.get(key, boot_clock())) is not None:
                return kept
            if not self._spend(own):
                return None
            outcome = await self._fetch(url, kind, headers, body, self._job.max_bytes)
        if static:
            self._assets.put(key, outcome, boot_clock())
        return outcome

    def _is_own(self, url: str) -> bool:
        return host_key(url, self._settings.politeness_unit) == self._own_host

    def _is_denied(self, url: str) -> bool:
        name = host_key(url)
        bare = name.rsplit(":", 1)[0]
        if any(fnmatchcase(name, p) or fnmatchcase(bare, p) for p in self._settings.deny_hosts):
            return True
        labels = bare.split(".")
        return any(".".join(labels[at:]) in _TRACKERS for at in range(len(labels) - 1))

    def _spend(self, own: bool) -> bool:
        if own:
            self._own += 1
            return self._own <= _MAX_OWN
        self._other += 1
        return self._other <= _MAX_OTHER

    async def _is_allowed(self, url: str) -> bool:
        agent = self._settings.agent
        known = self._allows(url, agent)
        if known is not None:
            return known
        host = host_key(url)
        if host not in self._robots_hosts and len(self._robots_hosts) >= _MAX_ROBOTS_HOSTS:
            return False
        self._robots_hosts.add(host)
        return await self._third_parties.allows(url, agent, self._ask_robots, boot_clock)

    async def _ask_robots(self, url: str, max_bytes: int) -> Outcome:
        own = self._is_own(url)
        async with self._own_turn if own else self._other_turns:
            if self._is_denied(url):
                return Outcome(url=url, fault=Fault.FORBIDDEN_ADDRESS, ended=boot_clock())
            return await self._fetch(url, "robots", (), None, max_bytes)

    async def _headers(self, url: str, said: Headers) -> Headers:
        """The job's own headers and the visit's cookies go to the page's host only."""
        if host_key(url) != host_key(self._job.url):
            return said
        mine = [(name, value) for name, value in self._job.headers if name.lower() not in _OF_THE_PAGE]
        taken = {name.lower() for name, _ in mine}
        mine += [pair for pair in said if pair[0] not in taken]
        if cookies := await self._cookies(url):
            mine.append(("Cookie", cookies))
        return tuple(mine)

    async def _cookies(self, url: str) -> str:
        jar: dict[str, str] = {}
        for name, value in self._job.headers:
            if name.lower() == "cookie":
                jar.update(_pair(part) for part in value.split(";") if "=" in part)
        if self._context is not None:
            for cookie in await self._context.cookies([url]):
                jar[cookie["name"]] = cookie["value"]
        return "; ".join(f"{name}={value}" for name, value in jar.items())

    async def _fetch(self, url: str, kind: str, headers: Headers, body: bytes | None, max_bytes: int) -> Outcome:
        job = FetchJob(
            id=0, url=url, deadline=self.until, timeout_s=self._settings.fetch_timeout_s, max_bytes=max_bytes,
            headers=headers, proxy_pool=self._job.proxy_pool, body=body, keep_partial=kind == "robots",
        )  # fmt: skip
        return await self._send(job, lambda outcome: self._note(outcome, kind))

    def _note(self, outcome: Outcome, kind: str) -> None:
        if outcome.started is None:
            return
        host = host_key(outcome.url, self._settings.politeness_unit)
        self.log.append(
            Subresource(
                url=outcome.url, host=host, started=outcome.started, ended=outcome.ended, status=outcome.status,
                kind=kind,
            )
        )  # fmt: skip


def _is_passed_on(name: str) -> bool:
    return name not in _NOT_PASSED_ON and not name.startswith(("sec-", "proxy-", ":"))


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.strip().partition("=")
    return name, value


def _for_browser(headers: Headers) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        # One line that the browser rejects as a header would cost the whole response.
        if lower not in _NOT_GIVEN and _NAME.match(lower) and _VALUE.match(value):
            joint = "\n" if lower == "set-cookie" else ", "
            given[lower] = f"{given[lower]}{joint}{value}" if lower in given else value
    return given


async def _abort(route: Route, reason: str = "blockedbyclient") -> None:
    try:
        await route.abort(reason)
    except Exception:
        # The request is gone already; its handling must end all the same.
        with suppress(Exception):
            await route.fallback()
