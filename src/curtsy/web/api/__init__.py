"""The endpoints, one module per group. Importing this package declares them all."""

from curtsy.web.api import (  # noqa: F401
    about,
    audit,
    crawls,
    deletion,
    explain,
    exports,
    failures,
    health,
    hosts,
    pages,
    records,
    reviews,
    schedules,
    selectors,
    urls,
    workers,
)  # fmt: skip
