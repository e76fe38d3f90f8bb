"""One setting of a Scrapy project puts all parts in their places."""

from __future__ import annotations

from typing import Any, Self

from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

#: the last before the downloader: what the cache answers takes no turn
_ORDER = 990
_TURNS = "curtsy.scrapy.TurnsMiddleware"
_SPIDER = SETTINGS_PRIORITIES["spider"]


class Addon:
    """`ADDONS = {"curtsy.scrapy.Addon": 100}`. A delay of the project becomes the least pause of every host."""

    def __init__(self, crawler: Crawler) -> None:
        self._spider = crawler.spidercls

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        delay_s = self._delay_s(settings)
        if delay_s and settings.get("CURTSY_DELAY_S") is None:
            settings.set("CURTSY_DELAY_S", delay_s, "addon")
        _put(settings, "SCHEDULER", "curtsy.scrapy.Scheduler")
        _put(settings, "DUPEFILTER_CLASS", "curtsy.scrapy.DupeFilter")
        middlewares: dict[Any, Any] = dict(settings.getdict("DOWNLOADER_MIDDLEWARES"))
        middlewares.setdefault(_TURNS, _ORDER)
        _put(settings, "DOWNLOADER_MIDDLEWARES", middlewares)
        # The frontier keeps the pauses: a second pause in the downloader would only let turns run out.
        _put(settings, "DOWNLOAD_DELAY", 0)
        _put(settings, "AUTOTHROTTLE_ENABLED", False)

    def _delay_s(self, settings: BaseSettings) -> float:
        """Of the project, or of the spider's attribute, which Scrapy reads only after its add-ons."""
        said = getattr(self._spider, "download_delay", None)
        if said is not None and (settings.getpriority("DOWNLOAD_DELAY") or 0) < _SPIDER:
            return float(said)
        return settings.getfloat("DOWNLOAD_DELAY")


def _put(settings: BaseSettings, name: str, value: Any) -> None:
    """Whatever a project, its spider or the command line says: half of these parts would be worse than none."""
    settings.set(name, value, max(settings.getpriority(name) or 0, _SPIDER))
