"""Curtsy: a polite, durable, distributed web crawler."""

__version__ = "0.1.0"
