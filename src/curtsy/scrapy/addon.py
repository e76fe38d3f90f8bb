"""A Scrapy add-on that configures all components with one setting."""

from __future__ import annotations

from typing import Any, Self

from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from curtsy.scrapy.run_name import note_arguments

#: next to the downloader: responses from the cache need no slot
_ORDER = 990
_MIDDLEWARE = "curtsy.scrapy.SlotMiddleware"
#: the old name of it
_OLD_MIDDLEWARE = "curtsy.scrapy.TurnsMiddleware"
_SPIDER = SETTINGS_PRIORITIES["spider"]


class Addon:
    """`ADDONS = {"curtsy.scrapy.Addon": 100}`. The delay of the project becomes the minimum delay of every host."""

    def __init__(self, crawler: Crawler) -> None:
        self._spider = crawler.spidercls

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Called before any spider is created."""
        note_arguments()

    def update_settings(self, settings: BaseSettings) -> None:
        delay_s = self._delay_s(settings)
        if delay_s and settings.get("CURTSY_DELAY_S") is None:
            settings.set("CURTSY_DELAY_S", delay_s, "addon")
        _put(settings, "SCHEDULER", "curtsy.scrapy.Scheduler")
        _put(settings, "DUPEFILTER_CLASS", "curtsy.scrapy.DupeFilter")
        middlewares: dict[Any, Any] = dict(settings.getdict("DOWNLOADER_MIDDLEWARES"))
        if _OLD_MIDDLEWARE not in middlewares:
            middlewares.setdefault(_MIDDLEWARE, _ORDER)
        _put(settings, "DOWNLOADER_MIDDLEWARES", middlewares)
        # The frontier applies the delays: a second delay in the downloader would only let slots expire.
        _put(settings, "DOWNLOAD_DELAY", 0)
        _put(settings, "AUTOTHROTTLE_ENABLED", False)

    def _delay_s(self, settings: BaseSettings) -> float:
        """The delay of the project, or the spider's attribute, which Scrapy reads only after its add-ons."""
        delay_s = getattr(self._spider, "download_delay", None)
        if delay_s is not None and (settings.getpriority("DOWNLOAD_DELAY") or 0) < _SPIDER:
            return float(delay_s)
        return settings.getfloat("DOWNLOAD_DELAY")


def _put(settings: BaseSettings, name: str, value: Any) -> None:
    """Overrides the project, the spider and the command line: a partial set of components would not be polite."""
    settings.set(name, value, max(settings.getpriority(name) or 0, _SPIDER))
