"""Pages that are read outside the event loop: heavy pages, documents, long sitemaps, and stored bodies after a 304.

The slot of such a page was returned already. Its result is held, and joins a group when the page has been read.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

from curtsy.content.documents.model import FileText
from curtsy.content.reading import ParseTimeout, Reading, within
from curtsy.content.sitemaps import sitemap
from curtsy.core.model import Lease, Page, hot_value
from curtsy.core.observe import count, log_crawl
from curtsy.core.outcome import Outcome
from curtsy.core.settings import Settings
from curtsy.core.threads import in_thread
from curtsy.crawl import results, sitemap_links
from curtsy.crawl.commit_queue import CommitQueue
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.results import Result
from curtsy.fetch.document_limits import DocumentLimits
from curtsy.services.document_process import documents, limits_of
from curtsy.services.reader_process import heavy_page_reader
from curtsy.store.warc import WarcRecord

Headers = tuple[tuple[str, str], ...]
#: names of headers that describe the body as it was sent, or the connection
_OF_BODY = re.compile(r"content-|transfer-|connection$|keep-alive$|trailer$|upgrade$|te$", re.IGNORECASE)


@hot_value(kw_only=False)
class RequestUnderWay:
    """A lease whose request is in flight."""

    lease: Lease
    #: None for robots.txt
    context: CrawlContext | None
    previous: Page | None = None


class SlowReading:
    """One per process."""

    def __init__(
        self, settings: Settings, groups: CommitQueue, limits: DocumentLimits,
        result_of: Callable[[RequestUnderWay, Outcome, Reading | FileText | None], Result],
        stored: Callable[[Page], Awaitable[WarcRecord | None]], learn: Callable[[str, bool], None],
        on_read: Callable[[], None], unreadable: set[int],
    ) -> None:  # fmt: skip
        """`stored`: reads the stored response of a page. `learn`: notes whether a host's page needed a browser.
        `unreadable`: gets the fences of pages that could not be read because of an error in Curtsy."""
        self._settings, self._groups, self._documents = settings, groups, limits
        self._result_of, self._stored, self._learn = result_of, stored, learn
        self._on_read = on_read
        self._unreadable = unreadable
        #: how many are being read
        self.reading = 0
        #: one heavy page is read at a time, and one document
        self._aside, self._reader = asyncio.Lock(), asyncio.Lock()
        #: the run ends: documents that are not read yet are fetched again
        self._no_time = asyncio.Event()

    def begin(self) -> None:
        self.reading = 0
        self._no_time.clear()

    def read(self, request: RequestUnderWay, result: Result) -> Coroutine[Any, Any, None]:
        """Reads a page or sitemap whose result is not complete. Counts from now on."""
        self.reading += 1
        assert request.context is not None
        if result.is_heavy or result.unread is not None:
            return self._read_heavy(request, result)
        return self._read_long(result, request.context)

    def read_stored(
        self, request: RequestUnderWay, previous: Page, result: Result, outcome: Outcome
    ) -> Coroutine[Any, Any, None]:
        """Reads the stored body of a page that has not changed. Counts from now on."""
        self.reading += 1
        return self._read_stored(request, previous, result, outcome)

    def give_up_documents(self) -> None:
        self._no_time.set()

    async def _read_stored(self, request: RequestUnderWay, previous: Page, result: Result, outcome: Outcome) -> None:
        try:
            if previous.document is not None:
                await self._documents.budget.room(result.lease.fence, previous.size)
            record = await self._stored(previous)
            if record is None:
                raise LookupError("its record is missing")
            headers = _renewed(record.headers, outcome.headers)
            stored = replace(outcome, status=200, headers=headers, body=record.body)
            again = self._result_of(request, stored, None)
            if again.is_heavy or again.unread is not None:
                again = await self._read_in_process(request, again)
            result = results.completed(result, again)
        except Exception as error:
            assert request.context is not None
            crawl, url = request.context.crawl, request.lease.entry.url
            log_crawl(crawl, "stored_body_unreadable", level="warning", url=url, error=str(error))
            result = results.ask_again(result, "stored_body_unreadable")
        finally:
            self.reading -= 1
        self._groups.hold(result)

    async def _read_heavy(self, request: RequestUnderWay, result: Result) -> None:
        """A document, or a page that may block the parser for long: the loop continues in the meantime."""
        lease = result.lease
        try:
            result = results.completed(result, await self._read_in_process(request, result))
            if result.needed_browser is not None:
                self._learn(lease.host, result.needed_browser)
        except Exception as error:
            # There is no result for the page: its lease ends as if it had crashed the worker.
            count("unexpected_errors")
            assert request.context is not None
            crawl = request.context.crawl
            log_crawl(crawl, "page_unreadable", level="error", url=lease.entry.url, error=repr(error))
            self._groups.drop(lease.fence)
            self._unreadable.add(lease.fence)
        else:
            self._groups.hold(result)
            self._on_read()
        finally:
            self.reading -= 1

    async def _read_in_process(self, request: RequestUnderWay, result: Result) -> Result:
        """The page as a separate process reads it."""
        if result.unread is not None:
            return await self._read_document(request, result, result.unread)
        context, outcome = request.context, result.outcome
        assert context is not None
        assert outcome is not None
        s = self._settings
        given = (outcome.body, outcome.header("content-type"), result.lease.entry.url, s.agent, context.auto_render)
        count("heavy_pages")
        try:
            async with self._aside:
                reading = await in_thread(heavy_page_reader.read, s.parse_timeout_s, *given)
        except ParseTimeout:
            return results.give_up(result, context.crawl, s)
        return self._result_of(request, outcome, reading)

    async def _read_document(self, request: RequestUnderWay, result: Result, kind: str) -> Result:
        """A document as its process reads it. A problem with it is stored with its page and is not a failure."""
        outcome = result.outcome
        assert outcome is not None
        count("documents")
        stop, limits = threading.Event(), limits_of(self._settings)
        async with self._reader:
            if self._no_time.is_set():
                return results.fetch_again(result)
            given = (kind, outcome.body, outcome.header("content-type"), limits, stop)
            reading = asyncio.ensure_future(in_thread(documents.facts, *given))
            late = asyncio.ensure_future(self._no_time.wait())
            await asyncio.wait((reading, late), return_when=asyncio.FIRST_COMPLETED)
            late.cancel()
            if not reading.done():
                documents.abort(stop)
                await asyncio.wait((reading,))
                return results.fetch_again(result)
        return self._result_of(request, outcome, reading.result())

    async def _read_long(self, result: Result, context: CrawlContext) -> None:
        """A long sitemap: the loop does other work between the slices of its links."""
        assert result.outcome is not None
        url, links = result.lease.entry.url, []
        try:
            # A sitemap may be fifty times as long as a page.
            limit_s = self._settings.parse_timeout_s * (1 + len(result.outcome.body) / 1e6)
            content = await in_thread(within, limit_s, sitemap, result.outcome.body, sitemap_links.MAX_SITEMAP_URLS)
            listings = await in_thread(sitemap_links.listings_of, url, content, context.folding)
            for some in sitemap_links.sitemap_links(url, context, content):
                links += some
                await asyncio.sleep(0)
        except ParseTimeout:
            self._groups.hold(results.give_up(result, context.crawl, self._settings))
            self._on_read()
        except Exception as error:
            # Without all of its links it is not done: its lease ends as if it had crashed the worker.
            count("unexpected_errors")
            log_crawl(context.crawl, "sitemap_unreadable", level="error", url=url, error=repr(error))
            self._groups.drop(result.lease.fence)
            self._unreadable.add(result.lease.fence)
        else:
            self._groups.hold(results.with_links(result, links, listings))
            self._on_read()
        finally:
            self.reading -= 1


def _renewed(stored: Headers, answered: Headers) -> Headers:
    """The headers of a 304 replace those of the stored response (RFC 9110 15.4.5), except headers that describe the
    body or the connection. Cookies are set by the 304, not by the stored response.
    """
    fresh = tuple(pair for pair in answered if not _OF_BODY.match(pair[0]))
    names = {"set-cookie", *(name.lower() for name, _ in fresh)}
    return (*(pair for pair in stored if pair[0].lower() not in names), *fresh)
