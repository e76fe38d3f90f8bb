"""One setting of a Scrapy project puts all parts in their places."""

from __future__ import annotations

from typing import Any

from scrapy.settings import BaseSettings

#: the last before the downloader: what the cache answers takes no turn
_ORDER = 990


class Addon:
    """`ADDONS = {"curtsy.scrapy.Addon": 100}`. A delay of the project becomes the least pause of every host."""

    def update_settings(self, settings: BaseSettings) -> None:
        settings.set("SCHEDULER", "curtsy.scrapy.Scheduler", "addon")
        settings.set("DUPEFILTER_CLASS", "curtsy.scrapy.DupeFilter", "addon")
        middlewares: dict[Any, Any] = dict(settings.getdict("DOWNLOADER_MIDDLEWARES"))
        middlewares.setdefault("curtsy.scrapy.TurnsMiddleware", _ORDER)
        settings.set("DOWNLOADER_MIDDLEWARES", middlewares, "addon")
        delay_s = settings.getfloat("DOWNLOAD_DELAY")
        if delay_s and settings.get("CURTSY_DELAY_S") is None:
            settings.set("CURTSY_DELAY_S", delay_s, "addon")
        # The frontier keeps the pauses: a second pause in the downloader would only let turns run out.
        for name, value in (("DOWNLOAD_DELAY", 0), ("AUTOTHROTTLE_ENABLED", False)):
            settings.set(name, value, "addon")
