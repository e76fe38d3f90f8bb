"""Writes the audit log: requests that change something, and requests that were refused for their key."""

from __future__ import annotations

import re
from typing import Any

from flask import Response, g, request

from curtsy.core import clock
from curtsy.core.errors import CurtsyError
from curtsy.core.observe import log
from curtsy.store import audit_log
from curtsy.store.audit_log import Entry
from curtsy.web.backend_thread import BackendThread
from curtsy.web.limits import RateLimit
from curtsy.web.problems import Problem

_READS = ("GET", "HEAD", "OPTIONS")
_REFUSED = (401, 403)
_LONGEST = 500
_CRAWL = re.compile(r"/crawls/([0-9a-f-]{36})(?:[/?]|$)")


class Audit:
    """One per application. Refusals are limited per address: they must not fill the database."""

    def __init__(self, backend: BackendThread) -> None:
        self._backend = backend
        self._refusals = RateLimit(0.2, 20)

    def note(self, response: Response) -> None:
        """Write the request to the log if it belongs there. A store that is unavailable does not fail the request."""
        refused = response.status_code in _REFUSED
        if (request.method in _READS and not refused) or (refused and not self._has_room()):
            return
        entry = _entry(response)
        log("audit", level="warning" if refused else "info", key=entry.key_id, address=entry.address,
            method=entry.method, path=entry.path, status=entry.status, crawl=entry.crawl)  # fmt: skip
        try:
            self._backend.store.run(audit_log.add, entry)
        except CurtsyError as error:
            log("audit_not_written", level="error", error=str(error))

    def _has_room(self) -> bool:
        try:
            self._refusals.take(request.remote_addr or "")
        except Problem:
            return False
        return True


def _entry(response: Response) -> Entry:
    caller = g.get("caller")
    return Entry(
        at_ms=clock.now_ms(), key_id=None if caller is None else caller.key_id, address=request.remote_addr or "",
        method=request.method, path=request.path[:_LONGEST], status=response.status_code,
        crawl=_crawl_of(response), request_id=g.request_id,
    )  # fmt: skip


def _crawl_of(response: Response) -> str | None:
    """The crawl in the path, in the answer of its creation, or in the page that a form leads to."""
    for text in (f"{request.path}/", response.headers.get("Location", "")):
        if found := _CRAWL.search(text):
            return found[1]
    if request.path == "/v1/crawls" and response.status_code == 202:
        answer: Any = response.get_json(silent=True)
        return str(answer["id"]) if isinstance(answer, dict) and "id" in answer else None
    return None
