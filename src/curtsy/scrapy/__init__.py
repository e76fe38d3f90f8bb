"""Scrapy on the frontier: an existing project crawls on any number of machines, politely per host, and loses nothing.

    ADDONS = {"curtsy.scrapy.Addon": 100}
    CURTSY_STORE_URL = "postgresql://..."       # leave both out for the data folder of one machine
    CURTSY_FRONTIER_URL = "redis://..."

The store keeps requests until their callbacks have finished; the requests of a killed spider go to the other processes,
or to its next start. Each download, also of robots.txt and inline, takes a slot of its host from the frontier.
"""

from __future__ import annotations

from curtsy.scrapy.addon import Addon
from curtsy.scrapy.scheduler import DupeFilter, Scheduler
from curtsy.scrapy.slots import SlotMiddleware, TurnsMiddleware

__all__ = ["Addon", "DupeFilter", "Scheduler", "SlotMiddleware", "TurnsMiddleware"]
