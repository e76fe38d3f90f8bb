"""The dashboard: server-rendered pages that call the functions of the API. Importing this package declares them."""

from curtsy.web.dashboard import (  # noqa: F401
    audit,
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
    selectors,
    signing,
    workers,
)  # fmt: skip
