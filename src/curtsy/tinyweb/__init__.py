"""A small synthetic web with many hosts and many faults, for the demo, tests and benchmarks.

It imports nothing of the crawler: its rules for robots.txt and politeness are written independently, so that it can
judge the crawler.
"""

from __future__ import annotations

from curtsy.tinyweb.child import TinyWeb
from curtsy.tinyweb.facts import Organization, truth
from curtsy.tinyweb.web import demo_seeds

__all__ = ["Organization", "TinyWeb", "demo_seeds", "truth"]
