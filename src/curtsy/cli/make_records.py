"""The records of a crawl that `curtsy crawl` runs."""

from __future__ import annotations

import asyncio
from typing import Any

from curtsy.cli.progress import Made, Progress
from curtsy.core.errors import StoreUnavailable
from curtsy.core.model import Crawl
from curtsy.core.observe import log
from curtsy.core.shutdown import StopFlag
from curtsy.records import stages
from curtsy.services.backends import Services
from curtsy.store import outbox, records
from curtsy.store.engine import Store, read

#: seconds between two counts of records while they are made
_EVERY_S = 1.0


async def make(services: Services, crawl: Crawl, shown: Progress, stop: StopFlag) -> None:
    """Run the stages of a crawl, and show how many records there are."""
    watching = asyncio.create_task(_show(services.store, crawl, shown))
    try:
        await stages.run_all(services, crawl.n, stop)
    finally:
        watching.cancel()


def by_status(tx: Any, crawl: Crawl) -> dict[str, int]:
    return records.counts(tx, crawl.n, crawl.schema_hash)


def contradicted(tx: Any, crawl: Crawl) -> int:
    return records.with_contradicted_fields(tx, crawl.n, crawl.schema_hash)


async def _show(store: Store, crawl: Crawl, shown: Progress) -> None:
    """Show how many records there are, and how many pages or sites are left, until it is canceled."""

    def look(tx: Any) -> Made:
        return Made(by_status(tx, crawl), outbox.left(tx, crawl.n))

    while True:
        try:
            shown.records(await read(store, look))
        except StoreUnavailable as error:
            log("progress_not_read", level="debug", error=str(error))
        await asyncio.sleep(_EVERY_S)
