"""Deleting crawls and pages. What is asked for is stored before the answer, and carried out behind it."""

from __future__ import annotations

import threading

from curtsy.control import retention
from curtsy.core.errors import CurtsyError
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.store import crawls, deletion
from curtsy.store.engine import Store
from curtsy.web.models.deletion import Deleting, PagesNamed, PendingDeletions, pending_of
from curtsy.web.routing import Call, endpoint

#: a process that was asked works at it for so long; Beat goes on with the rest
_WORK_S = 60.0


@endpoint("DELETE", "/v1/crawls/{id}", scope="admin", answers={202: Deleting}, tags=("deletion",))
def delete_crawl(call: Call, id: str) -> Deleting:
    """Delete a crawl with all its pages, bodies, records, dead letters and requests.

    One that is at work ends within 2 s. It is `deleting` until everything is gone, which may take a while. A body that
    pages of other crawls refer to is kept for them.
    """
    found = call.crawl(id)
    noted = call.wait(retention.delete_crawl(call.services, call.store, found.id, call.request_id))
    _begin(call.settings)
    return Deleting(id=noted, request_id=call.request_id)


@endpoint(
    "DELETE",
    "/v1/pages",
    scope="admin",
    query=PagesNamed,
    answers={202: Deleting},
    problems=(404,),
    tags=("deletion",),
)
def delete_pages(call: Call) -> Deleting:
    """Delete the pages of a URL or of a host, with their bodies and records, in one crawl or in all.

    A body that other pages refer to is kept for them. The crawl remembers the URL as done, and does not fetch it again.
    """
    query: PagesNamed = call.query
    crawl = None if query.crawl is None else call.crawl(query.crawl).n
    noted = retention.delete_pages(
        call.store,
        call.settings.politeness_unit,
        url=query.url,
        host=query.host,
        crawl=crawl,
        request_id=call.request_id,
    )
    _begin(call.settings)
    return Deleting(id=noted, request_id=call.request_id)


@endpoint("GET", "/v1/deletions", scope="read", answers={200: PendingDeletions}, tags=("deletion",))
def list_deletions(call: Call) -> PendingDeletions:
    """List what is being deleted."""
    with call.store.read() as tx:
        found = deletion.pending(tx, 1000)
        ids = crawls.ids(tx, {one.crawl for one in found if one.crawl is not None})
    return PendingDeletions(deletions=[pending_of(one, ids.get(one.crawl or 0)) for one in found])


_working = threading.Lock()
_asked = threading.Event()


def _begin(settings: Settings) -> None:
    _asked.set()
    threading.Thread(target=_work, args=(settings,), name="deleting", daemon=True).start()


def _work(settings: Settings) -> None:
    """One thread of a process at a time; whoever finds one at work leaves it what it came for."""
    while _asked.is_set() and _working.acquire(blocking=False):
        _asked.clear()
        try:
            # A store of its own: the process may close the other one at any time.
            with Store.open(settings.effective_store_url) as store:
                retention.delete_some(store, settings, _WORK_S)
        except CurtsyError as error:
            log("deletion_waits", level="warning", error=str(error))
        finally:
            _working.release()
