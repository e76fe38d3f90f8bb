"""From a lease to its request: limits, types, headers, proxy."""

from __future__ import annotations

from dataclasses import replace

from curtsy.core.model import Kind, Lease, Page
from curtsy.core.settings import HostRule, Settings
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.fetch.document_limits import DocumentLimits
from curtsy.fetch.http import FetchJob
from curtsy.rules.cookies import cookie_header
from curtsy.rules.urls import host_key

#: a little more than the 500 KiB that are parsed
_ROBOTS_BYTES = 512 * 1024


class RequestBuilder:
    """Makes the fetch job of a lease from the settings and its crawl."""

    def __init__(self, settings: Settings, documents: DocumentLimits | None = None) -> None:
        self._settings = settings
        self._documents = documents or DocumentLimits.of(settings)
        self._page_bytes = int(settings.max_body_mb * 1_000_000)
        self._sitemap_bytes = int(settings.max_sitemap_mb * 1_000_000)
        #: the pool for hosts that have no pool in the settings
        self._pool = "default" if "default" in settings.proxies else None

    def for_robots(self, lease: Lease) -> FetchJob:
        return self._job(lease, (), _ROBOTS_BYTES, None, True)

    def for_url(self, lease: Lease, context: CrawlContext, previous: Page | None) -> FetchJob:
        """A page (conditional if an earlier version is known), a browser's visit, or a sitemap of any type."""
        # A rendered page may change although its own response does not.
        conditional = previous if lease.entry.kind is Kind.PAGE else None
        headers = self._headers(lease, context, conditional)
        pool = context.crawl.proxy_pool
        if lease.entry.kind is Kind.SITEMAP:
            return self._job(lease, headers, self._sitemap_bytes, None, True, pool)
        job = self._job(
            lease, headers, self._page_bytes, self._settings.keep_types, False, pool, self._documents
        )  # fmt: skip
        if lease.entry.kind is Kind.BROWSER:
            return replace(job, timeout_s=self._settings.render_timeout_s)
        return job

    def _job(
        self, lease: Lease, headers: tuple[tuple[str, str], ...], max_bytes: int, keep: tuple[str, ...] | None,
        partial: bool, pool: str | None = None, documents: DocumentLimits | None = None,
    ) -> FetchJob:  # fmt: skip
        rule = self._rule_of(lease)
        return FetchJob(
            id=lease.fence, url=lease.entry.url, deadline=lease.valid_until, timeout_s=self._settings.fetch_timeout_s,
            max_bytes=max_bytes, keep_types=keep, headers=headers, keep_partial=partial,
            proxy_pool=(rule.proxy_pool if rule is not None else None) or pool or self._pool,
            documents=documents, fence=lease.fence, keep_gzip=lease.entry.kind is Kind.PAGE,
        )  # fmt: skip

    def _rule_of(self, lease: Lease) -> HostRule | None:
        """By the host's own name, even if the unit of politeness is its domain."""
        return self._settings.hosts.get(host_key(lease.entry.url)) if self._settings.hosts else None

    def _headers(self, lease: Lease, context: CrawlContext, previous: Page | None) -> tuple[tuple[str, str], ...]:
        chain, rule = lease.entry.chain, self._rule_of(lease)
        if chain is None and rule is None and previous is None and not context.jars:
            return ()
        headers: list[tuple[str, str]] = list(rule.headers.items()) if rule is not None else []
        if previous is not None:
            headers += [("If-None-Match", previous.etag)] if previous.etag else []
            headers += [("If-Modified-Since", previous.last_modified)] if previous.last_modified else []
        if cookies := cookie_header(chain, context.jars.get(lease.host), lease.entry.url):
            headers.append(("Cookie", cookies))
        return tuple(headers)
