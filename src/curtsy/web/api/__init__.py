"""The endpoints, one module per group. Importing this declares them all."""

from curtsy.web.api import crawls, health

__all__ = ["crawls", "health"]
