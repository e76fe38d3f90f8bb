"""Alias for `celery -A curtsy.celery_app`: the Celery app is in `curtsy.fleet.celery_app`."""

from curtsy.fleet.celery_app import app

__all__ = ["app"]
