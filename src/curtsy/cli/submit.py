"""`submit`: stores a crawl and returns at once; workers do the work."""

from __future__ import annotations

from typing import Any

from curtsy.cli import seeds, show
from curtsy.cli.backends import SharedOptions
from curtsy.cli.crawl_options import From, Urls, request_of, with_crawl_options
from curtsy.core.errors import UsageError


@with_crawl_options
def submit(options: dict[str, Any], shared: SharedOptions, urls: Urls = None, from_: From = None) -> None:
    """Submit a crawl and return at once.

    The workers of a fleet, or `curtsy crawl --resume`, do the work.
    """
    if not urls and from_ is None:
        raise UsageError("Give at least one URL, or --from FILE. For example: curtsy submit https://example.com/")
    request_of(options)
    id = shared.backend().submit(options, seeds.read(urls or (), from_))
    if not shared.printed({"id": id}):
        show.say(id)
