"""Crawls with pages, bodies and dead letters, written as a commit would."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence
from typing import Any

from curtsy.content.documents.sniff import kind_of
from curtsy.core.document_facts import DocumentFacts
from curtsy.core.model import BodyRef, Crawl, CrawlState, Failure, Kind, Lane, NewUrl, Page, UrlState, new_id
from curtsy.core.settings import Settings
from curtsy.rules.urls import fingerprint, host_key
from curtsy.store import crawls, failures, pages, queues, responses, urls
from curtsy.store.engine import Store
from curtsy.store.responses import Response
from curtsy.store.segments import Segments, SegmentStore
from curtsy.store.warc import WarcItem

#: of the first page; each one is a second later
BEGUN_MS = 1_700_000_000_000


def crawl(store: Store, state: CrawlState = CrawlState.FINISHED, **fields: Any) -> Crawl:
    return store.run(crawls.create, Crawl(id=new_id(), request_id="made", state=state, created_ms=BEGUN_MS, **fields))


def add_pages(
    store: Store, segments: SegmentStore, crawl: Crawl, found: Sequence[tuple[str, bytes]], *, gzipped: bool = False,
    **fields: Any,
) -> list[Page]:  # fmt: skip
    """Pages (URL, body) with records in a segment; a body that an earlier one has becomes a revisit. Documents are
    known by their bytes and their URL. `gzipped`: the bodies arrived as gzip."""
    coding = (("Content-Encoding", "gzip"),) if gzipped else ()
    firsts: dict[bytes, tuple[str, int]] = {}
    items, made = [], []
    for i, (url, body) in enumerate(found):
        digest, at_ms, fp = hashlib.sha256(body).hexdigest(), BEGUN_MS + i * 1000, fingerprint(url)
        same = firsts.setdefault(body, (url, at_ms))
        twin = None if same[0] == url else same
        items.append(
            WarcItem(
                url=url, fetched_ms=at_ms, status=200, headers=(("Content-Type", "text/html"), *coding), body=body,
                gzipped=gzip.compress(body, mtime=0) if gzipped else b"",
                sha256=digest, request_head=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", facts=(("crawl", crawl.id),),
                same_as=twin,
            )
        )  # fmt: skip
        given = {
            "status": 200, "content_type": "text/html", "depth": 0, "size": len(body), "request_id": "made",
            "same_as": None if twin is None else pages.page_id(crawl.n, fingerprint(twin[0])),
        }  # fmt: skip
        if (kind := kind_of("application/octet-stream", body, url)) is not None:
            given |= {"content_type": "application/octet-stream", "document": DocumentFacts(kind=kind)}
        made.append(
            {"id": pages.page_id(crawl.n, fp), "crawl": crawl.n, "fp": fp, "url": url, "host": host_key(url, "host"),
             "fetched_ms": at_ms, "sha256": digest, "fence": i + 1} | given | fields
        )  # fmt: skip
    rows = [Page(**one, body=ref) for one, ref in zip(made, segments.append(items), strict=True)]
    store.run(_insert, crawl, rows)
    return rows


def page_of(crawl: int, item: WarcItem, ref: BodyRef, **values: Any) -> Page:
    """The row of a page whose record was written by itself; it is known by its time."""
    fp = item.fetched_ms.to_bytes(16, "big")
    return Page(
        id=pages.page_id(crawl, fp), crawl=crawl, fp=fp, url=item.url, host="a.test", status=200,
        fetched_ms=item.fetched_ms, depth=0, sha256=item.sha256, size=len(item.body), body=ref, **values,
    )  # fmt: skip


def _insert(tx: Any, crawl: Crawl, rows: list[Page]) -> None:
    new = [NewUrl(crawl=crawl.n, fp=page.fp, url=page.url, host=page.host, kind=Kind.PAGE) for page in rows]
    queues.open_queues(tx, [(crawl.n, page.host, Lane.BATCH.value, 1) for page in rows])
    urls.insert(tx, new, BEGUN_MS)
    urls.settle(tx, [urls.Settle(crawl.n, page.fp, page.fence, UrlState.DONE) for page in rows], BEGUN_MS)
    pages.insert(tx, rows)
    crawls.add_counts(tx, {(crawl.n, "open", ""): len(rows), (crawl.n, "done", ""): len(rows)})


def add_responses(store: Store, segments: SegmentStore, crawl: Crawl, found: Sequence[tuple[str, int, bytes]]) -> None:
    """Redirects and errors (URL, status, body) with records in a segment."""
    items = [
        WarcItem(
            url=url, fetched_ms=BEGUN_MS + i * 1000, status=status, headers=(), body=body,
            sha256=hashlib.sha256(body).hexdigest(), request_head=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        )
        for i, (url, status, body) in enumerate(found)
    ]  # fmt: skip
    rows = [
        Response(20_000 + i, crawl.n, fingerprint(one.url), host_key(one.url, "host"), one.status, one.fetched_ms, ref)
        for i, (one, ref) in enumerate(zip(items, segments.append(items), strict=True))
    ]
    store.run(responses.insert, rows)
    store.run(responses.insert, rows)  # a repeated transaction changes nothing


def add_failures(store: Store, crawl: Crawl, found: Sequence[tuple[str, str]], fence: int = 10_000) -> list[Failure]:
    """Dead letters (URL, cause), a second apart."""
    letters = [
        Failure(
            id=f"{fence + i:x}", crawl=crawl.n, fp=fingerprint(url), url=url, host=host_key(url, "host"), cause=cause,
            attempts=4, fence=fence + i, at_ms=BEGUN_MS + i * 1000, request_id="made",
        )
        for i, (url, cause) in enumerate(found)
    ]  # fmt: skip

    def write(tx: Any) -> None:
        queues.open_queues(tx, [(crawl.n, letter.host, Lane.BATCH.value, 1) for letter in letters])
        new = [NewUrl(crawl=crawl.n, fp=one.fp, url=one.url, host=one.host) for one in letters]
        urls.insert(tx, new, BEGUN_MS)
        settled = [urls.Settle(crawl.n, one.fp, one.fence, UrlState.FAILED, one.cause, 4) for one in letters]
        urls.settle(tx, settled, BEGUN_MS)
        failures.insert(tx, letters)
        counts = {(crawl.n, "open", ""): len(letters)}
        for one in letters:
            counts[crawl.n, "failed", one.cause] = counts.get((crawl.n, "failed", one.cause), 0) + 1
        crawls.add_counts(tx, counts)
        for host in {one.host for one in letters}:
            queues.mark_empty_if_none(tx, crawl.n, host)

    store.run(write)
    return letters


def folder_of(settings: Settings) -> Segments:
    return Segments(settings.segments_dir)
