"""Scrapy on the frontier: an existing project crawls on any number of machines, politely per host, and loses nothing.

    ADDONS = {"curtsy.scrapy.Addon": 100}
    CURTSY_STORE_URL = "postgresql://..."       # leave both out for the data folder of one machine
    CURTSY_FRONTIER_URL = "redis://..."

Requests are kept in the store until their callbacks are through; a spider that is killed leaves them to the others, or
to its next start. Each download takes its host's turn from the frontier, robots.txt and inline downloads too.
"""

from __future__ import annotations

from curtsy.scrapy.addon import Addon
from curtsy.scrapy.scheduler import DupeFilter, Scheduler
from curtsy.scrapy.slots import TurnsMiddleware

__all__ = ["Addon", "DupeFilter", "Scheduler", "TurnsMiddleware"]
