"""A crawl's pages written by the task itself, as `curtsy export` writes them."""

from __future__ import annotations

from curtsy.core.settings import Settings
from curtsy.export import pages
from curtsy.export.targets import target_of
from curtsy.store import crawls
from curtsy.store.engine import Store


def write(settings: Settings, crawl: str, where: str) -> int:
    """Pages written to a path or s3:// address, in the format that its name says."""
    target = target_of(where)
    chosen = pages.format_of(target, None)
    pages.check_target(target, chosen)
    with Store.open(settings.effective_store_url, create=False) as store:
        with store.read() as tx:
            found = crawls.get(tx, crawl)
        return pages.export(store, pages.segments_of(settings), found, target, chosen)
