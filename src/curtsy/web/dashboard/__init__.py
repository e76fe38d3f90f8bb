"""The dashboard: pages for people, made by the server, over the same functions as the API. Importing declares them."""

from curtsy.web.dashboard import (
    crawl,
    crawls,
    explain,
    failures,
    files,
    hosts,
    keys,
    live,
    overview,
    pages,
    review,
    schedules,
    signing,
    workers,
)

__all__ = [
    "crawl",
    "crawls",
    "explain",
    "failures",
    "files",
    "hosts",
    "keys",
    "live",
    "overview",
    "pages",
    "review",
    "schedules",
    "signing",
    "workers",
]
