"""The endpoints, one module per group. Importing this declares them all."""

from curtsy.web.api import about, crawls, events, health, records, schedules

__all__ = ["about", "crawls", "events", "health", "records", "schedules"]
