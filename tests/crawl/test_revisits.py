"""A second crawl of the same pages: conditional requests, stored bodies, the same URLs."""

from __future__ import annotations

from pathlib import Path

from crawl_folder import CrawlFolder

from curtsy.tinyweb import TinyWeb


def test_a_second_crawl_finds_the_same_urls_though_no_page_has_changed(tmp_path: Path) -> None:
    # Host 4 is rendered by scripts: its pages are known from the sitemap alone.
    with TinyWeb.start(hosts=5, pages=8, faults=False) as web:
        folder = CrawlFolder(tmp_path, web)
        try:
            for _ in range(2):
                folder.crawl("http://org-0000.tinyweb.test/", "http://org-0004.tinyweb.test/")
            first, second = folder.ends(1), folder.ends(2)
            ((unchanged,),) = folder.rows("SELECT count(*) FROM pages WHERE crawl = 2 AND unchanged")
        finally:
            folder.close()
    assert first.keys() == second.keys()
    assert len(first) > 16
    assert unchanged >= 15
