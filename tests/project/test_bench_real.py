"""The benchmarks of real sites, stages, start-up and HTTPS: what they download and what they count."""

from __future__ import annotations

import time
from urllib.request import urlopen

import pytest

from bench import startup
from bench.contestants import Result
from bench.docs_sites import PACKAGES, newest
from bench.measure import Run
from bench.real import Crawl, most_missing, pages_of
from bench.stages import costs_of
from bench.tls import connections_of

HOSTS = ["vim.docs.test", "sqlite.docs.test"]


def crawl_of(*pages: str) -> Crawl:
    run = Run(wall_s=2, cpu_s=0.5, server_cpu_s=0, max_rss_mb=0, stdout="")
    return Crawl(pages=frozenset(pages), requests=9, run=run)


@pytest.mark.parametrize(
    ("host", "names", "expected"),
    [
        ("postgresql", ["postgresql-doc", "postgresql-doc-9", "postgresql-doc-15", "vim-doc"], "postgresql-doc-15"),
        ("python", ["python3-doc", "python3.9-doc", "python3.11-doc", "python2.7-doc"], "python3.11-doc"),
        ("libstdcxx", ["libstdc++-9-doc", "libstdc++-12-doc", "libstdc++-12-dev"], "libstdc++-12-doc"),
        ("vim", ["vim-doc", "vim-doc-ja"], "vim-doc"),
        ("vim", ["vim"], None),
    ],
)
def test_the_newest_package_is_downloaded(host: str, names: list[str], expected: str | None) -> None:
    [package] = [package for package in PACKAGES if package.host == host]
    assert newest(package.name, names) == expected


def test_a_page_is_an_html_url_of_the_sites_with_status_200() -> None:
    lines = [
        "vim.docs.test/ 200 text/html",
        "vim.docs.test/ 200 text/html",
        "vim.docs.test/a.html?x=1 200 text/html; charset=utf-8",
        "vim.docs.test/gone.html 404 text/html",
        "vim.docs.test/logo.png 200 image/png",
        "vim.docs.test/robots.txt 404 text/html",
        "elsewhere.test/ 200 text/html",
        "sqlite.docs.test/old 304 -",
    ]
    assert pages_of(lines, HOSTS) == {"vim.docs.test/", "vim.docs.test/a.html?x=1"}


def test_missing_pages_are_counted_against_the_same_repeat_in_the_worst_one() -> None:
    known = [crawl_of("a", "b", "c"), crawl_of("a", "b")]
    assert most_missing([crawl_of("a", "b", "c", "d"), crawl_of("a", "b", "c")], known) == 0
    assert most_missing([crawl_of("a", "d"), crawl_of("b")], known) == 2


def test_figures_are_per_page() -> None:
    assert crawl_of("a", "b").cpu_ms == 250
    assert crawl_of("a", "b").pages_per_s == 1


def test_the_cost_of_a_stage_comes_from_the_counters_of_the_crawl() -> None:
    run = Run(wall_s=1, cpu_s=0.9, server_cpu_s=0, max_rss_mb=0, stdout="")
    counters = {"stage_extract_cpu_us": 200_000, "stage_store_cpu_us": 100_000, "commits": 3}
    costs = costs_of(Result(pages=100, run=run, said={"counters": counters}))
    assert costs.stages == {"extract": 2.0, "score": 0.0, "store": 1.0}
    assert costs.total == pytest.approx(9)
    assert costs.rest == pytest.approx(6)


def test_the_time_of_the_first_request_is_measured_at_the_server() -> None:
    with startup.web() as (port, asked):
        before = time.monotonic()
        with urlopen(f"http://127.0.0.1:{port}/page") as answer:
            assert answer.read() == startup.PAGE
        assert before <= asked[0] <= time.monotonic()


def test_connections_and_resumed_sessions_come_from_the_log_of_the_server() -> None:
    lines = ["1 . HTTP/2.0 200", "1 . HTTP/2.0 200", "2 r HTTP/2.0 200", "3 r HTTP/2.0 404", "4 . HTTP/2.0 200"]
    found = connections_of(lines, pages=8)
    assert (found.per_page, found.resumed, found.protocol) == (0.5, 0.5, "HTTP/2.0")
    assert connections_of([], pages=0).per_page == 0
