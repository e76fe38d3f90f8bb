"""The endpoints, one module per group. Importing this declares them all."""

from curtsy.web.api import (
    about,
    crawls,
    deletion,
    events,
    explain,
    failures,
    health,
    hosts,
    pages,
    records,
    reviews,
    schedules,
)

__all__ = [
    "about",
    "crawls",
    "deletion",
    "events",
    "explain",
    "failures",
    "health",
    "hosts",
    "pages",
    "records",
    "reviews",
    "schedules",
]
