"""Pages in a store and its segments, put there without a crawl."""

from __future__ import annotations

import hashlib
from pathlib import Path

from curtsy.core.model import Crawl, CrawlState, Page
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load
from curtsy.rules.urls import fingerprint
from curtsy.store import crawls, pages
from curtsy.store.engine import Store
from curtsy.store.segment_places import open_segments
from curtsy.store.segments import SegmentStore
from curtsy.store.warc import WarcItem

ID = "01930000-0000-7000-8000-000000000001"
T0 = 1_730_000_000_000


class StoredPages:
    """A crawl to which a test adds pages."""

    def __init__(self, folder: Path, store_url: str | None = None) -> None:
        self.settings: Settings = load(data_dir=folder, store_url=store_url)
        self.store = Store.open(self.settings.effective_store_url)
        self.segments: SegmentStore = open_segments(self.settings.segments_dir, 10**9)
        self.crawl = self.store.run(crawls.create, Crawl(id=ID, request_id="r", created_ms=T0))
        self.store.run(crawls.set_state, self.crawl.n, CrawlState.RUNNING, None, T0)
        self._n = 0

    def add(self, n: int = 1) -> list[Page]:
        """So many more pages, committed; in the order of their numbers."""
        made = sorted(self.make(n), key=lambda page: page.fp)  # as a commit writes them
        self.store.run(pages.insert, made)
        return made

    def make(self, n: int = 1) -> list[Page]:
        """So many more pages, not written to the database yet."""
        found = [self._page(self._n + i) for i in range(n)]
        self._n += n
        return found

    def _page(self, i: int) -> Page:
        url = f"https://a.test/p{i}"
        text = f"<nav>Menu {i}</nav><h1>Page {i}</h1><p>About <b>geese</b>, part {i}.</p>"
        body = f"<html><title>Page {i}</title><body>{text}".encode()
        digest = hashlib.sha256(body).hexdigest()
        headers = [("Content-Type", "text/html")]
        item = WarcItem(url=url, fetched_ms=T0 + i, status=200, headers=headers, body=body, sha256=digest)
        return Page(
            id="", crawl=self.crawl.n, fp=fingerprint(url), fence=10 + i, url=url, host="a.test", status=200,
            fetched_ms=T0 + i, depth=i, content_type="text/html", title=f"Page {i}", sha256=digest, size=len(body),
            body=self.segments.append([item])[0],
        )  # fmt: skip

    def close(self) -> None:
        self.segments.close()
        self.store.close()
