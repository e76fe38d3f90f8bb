"""Deletes crawls and pages. A deletion is stored before the answer and runs in the background."""

from __future__ import annotations

import threading

from curtsy.control import retention
from curtsy.core.errors import CurtsyError
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.store import crawls, deletion
from curtsy.store.engine import Store
from curtsy.web.models.deletion import Deleting, PagesNamed, PendingDeletion, PendingDeletions
from curtsy.web.models.fields import fill
from curtsy.web.routing import Call, endpoint

#: this process deletes for at most this long; Beat continues with the rest
_WORK_S = 60.0


@endpoint("DELETE", "/v1/crawls/{id}", scope="admin", status=202)
def delete_crawl(call: Call, id: str) -> Deleting:
    """Delete a crawl with all its pages, bodies, records, dead letters and requests.

    A running crawl ends within 2 s. Its state is `deleting` until everything is gone, which may take a while. A body
    that pages of other crawls refer to is kept for them.
    """
    found = call.crawl(id)
    deletion_id = call.wait(retention.delete_crawl(call.services, call.store, found.id, call.request_id))
    _begin(call.settings)
    return Deleting(id=deletion_id, request_id=call.request_id)


@endpoint("DELETE", "/v1/pages", scope="admin", status=202, problems=(404,))
def delete_pages(call: Call, query: PagesNamed) -> Deleting:
    """Delete the pages of a URL or of a host, with their bodies and records, in one crawl or in all.

    A body that other pages refer to is kept for them. The URL stays done in its crawl, which does not fetch it again.
    """
    deletion_id = retention.delete_pages(
        call.store,
        call.settings.politeness_unit,
        url=query.url,
        host=query.host,
        crawl=call.crawl_n(query.crawl),
        request_id=call.request_id,
    )
    _begin(call.settings)
    return Deleting(id=deletion_id, request_id=call.request_id)


@endpoint("GET", "/v1/deletions", scope="read")
def list_deletions(call: Call) -> PendingDeletions:
    """List the deletions in progress."""
    with call.store.read() as tx:
        found = deletion.pending(tx, 1000)
        ids = crawls.ids(tx, {one.crawl for one in found if one.crawl is not None})
    deletions = [
        fill(PendingDeletion, one, what="crawl" if one.whole else "pages", crawl=ids.get(one.crawl or 0))
        for one in found
    ]
    return PendingDeletions(deletions=deletions)


_working = threading.Lock()
_requested = threading.Event()


def _begin(settings: Settings) -> None:
    _requested.set()
    threading.Thread(target=_work, args=(settings,), name="deletion", daemon=True).start()


def _work(settings: Settings) -> None:
    """One thread per process at a time. A running thread also handles requests that arrive meanwhile."""
    while _requested.is_set() and _working.acquire(blocking=False):
        _requested.clear()
        try:
            # A separate store: the process may close the shared one at any time.
            with Store.open(settings.effective_store_url) as store:
                retention.delete_some(store, settings, _WORK_S)
        except CurtsyError as error:
            log("deletion_waits", level="warning", error=str(error))
        finally:
            _working.release()
