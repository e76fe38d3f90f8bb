"""How large the benchmarks are, and the site they run on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import nginx, site


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How large everything is."""

    repeats: int
    hosts: int
    pages: int
    peer_hosts: int
    #: pending URLs of the frontier figures
    urls: int
    polite_hosts: int
    polite_steady_s: int
    fleet_hosts: int
    fleet_pages: int
    #: of the crawl beside one task per URL
    task_hosts: int
    task_pages: int
    #: of the dashboard's lists
    shown_pages: int
    #: script-only hosts, and pages of each
    render_hosts: int
    render_pages: int
    #: of the spider on our frontier and on scrapy-redis
    spider_hosts: int
    spider_pages: int
    #: manuals from Debian packages
    real_sites: int
    #: of the PDF, DOCX and XLSX files
    document_pages: int
    #: of one host without a delay
    one_host_pages: int
    #: of the crawls with records
    stage_hosts: int
    #: of the crawls over HTTPS
    tls_hosts: int
    tls_pages: int
    port: int
    #: python of the environment that has the other crawlers; None: without them
    peers: str | None


FULL: dict[str, int] = {
    "repeats": 5,
    "hosts": 200,
    "pages": 100,
    "peer_hosts": 60,
    "urls": 1_000_000,
    "polite_hosts": 1000,
    "polite_steady_s": 60,
    "fleet_hosts": 300,
    "fleet_pages": 100,
    "task_hosts": 60,
    "task_pages": 30,
    "shown_pages": 1_000_000,
    "render_hosts": 20,
    "render_pages": 100,
    "spider_hosts": 10,
    "spider_pages": 30,
    "real_sites": 6,
    "document_pages": 200,
    "one_host_pages": 3000,
    "stage_hosts": 20,
    "tls_hosts": 20,
    "tls_pages": 100,
}
SHORT: dict[str, int] = {
    "repeats": 1,
    "hosts": 15,
    "pages": 100,
    "peer_hosts": 5,
    "urls": 20_000,
    "polite_hosts": 50,
    "polite_steady_s": 6,
    "fleet_hosts": 20,
    "fleet_pages": 6,
    "task_hosts": 6,
    "task_pages": 6,
    "shown_pages": 10_000,
    "render_hosts": 4,
    "render_pages": 15,
    "spider_hosts": 2,
    "spider_pages": 6,
    "real_sites": 2,
    "document_pages": 20,
    "one_host_pages": 300,
    "stage_hosts": 3,
    "tls_hosts": 3,
    "tls_pages": 12,
}


@contextmanager
def serve(hosts: int, pages: int, port: int) -> Iterator[site.Site]:
    with tempfile.TemporaryDirectory(prefix="curtsy-bench-site-") as folder:
        made = site.write(Path(folder) / "site", hosts=hosts, pages=pages, port=port)
        with nginx.serving(made, Path(folder) / "nginx"):
            yield made
