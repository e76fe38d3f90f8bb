"""A small synthetic web with many hosts and many faults: demo, tests, benchmarks.

It imports nothing of the crawler: what it knows about robots.txt and politeness is written down by hand, so that it
can judge the crawler.
"""

from __future__ import annotations

from curtsy.tinyweb.child import TinyWeb
from curtsy.tinyweb.facts import Organisation, truth
from curtsy.tinyweb.web import demo_seeds

__all__ = ["Organisation", "TinyWeb", "demo_seeds", "truth"]
