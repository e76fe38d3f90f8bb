"""The audit log."""

from __future__ import annotations

from curtsy.store import audit_log
from curtsy.web.models.audit import AuditEntry, AuditQuery
from curtsy.web.models.fields import since_to_ms
from curtsy.web.paging import Page, decode_one, page
from curtsy.web.routing import Call, endpoint


@endpoint("GET", "/v1/audit", scope="admin")
def list_audit(call: Call, query: AuditQuery) -> Page[AuditEntry]:
    """List requests that changed something, and refused ones, newest first."""
    before = decode_one(query.cursor, int)
    since_ms = since_to_ms(query.since)
    with call.store.read() as tx:
        found = audit_log.chunk(
            tx, query.limit + 1, before, key_id=query.key, crawl=query.crawl, since_ms=since_ms
        )  # fmt: skip
    return page(AuditEntry, found, query.limit, lambda entry: entry.n)
