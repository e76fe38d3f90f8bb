"""Celery: the app, its tasks, Beat's dispatcher, the worker process, and how they coordinate."""
