"""The endpoints, one module per group. Importing this declares them all."""

from curtsy.web.api import about, crawls, events, health

__all__ = ["about", "crawls", "events", "health"]
