"""Exports the pages of a crawl from the task, as `curtsy export` does."""

from __future__ import annotations

from curtsy.core.settings import Settings
from curtsy.export import pages
from curtsy.export.page_rows import PageRows, segments_of
from curtsy.export.tables import Format
from curtsy.export.targets import Target, target_of
from curtsy.store import crawls
from curtsy.store.engine import Store


def check(where: str) -> tuple[Target, Format]:
    """The target and the format of its suffix; raises UsageError if it cannot be written."""
    target = target_of(where)
    chosen = pages.format_of(target, None)
    pages.check_target(target, chosen)
    return target, chosen


def write(settings: Settings, crawl: str, where: str) -> int:
    """Write the pages to a path or s3:// address, in the format of its suffix; returns their number."""
    target, chosen = check(where)
    with Store.open(settings.effective_store_url, create=False) as store:
        with store.read() as tx:
            found = crawls.get(tx, crawl)
        return pages.export(PageRows(store, segments_of(settings), found), target, chosen)
