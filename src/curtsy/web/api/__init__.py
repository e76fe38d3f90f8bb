"""The endpoints, one module per group. Importing this declares them all."""

from curtsy.web.api import health

__all__ = ["health"]
