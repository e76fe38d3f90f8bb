"""The audit log."""

from __future__ import annotations

from pydantic import BaseModel, Field

from curtsy.web.models.fields import CrawlId, Since, Time
from curtsy.web.paging import Paged


class AuditEntry(BaseModel):
    """One request that changed something, or was refused."""

    at: Time
    key_id: str | None = Field(description="Id of the key; null: this machine without a key, or an unknown caller.")
    address: str = Field(description="Address of the client.")
    method: str
    path: str
    status: int
    crawl: str | None = Field(description="Id of the crawl that it was about.")
    request_id: str


class AuditQuery(Paged):
    key: str | None = Field(None, pattern="^[0-9a-f]{12}$", description="Only requests with this key.")
    crawl: CrawlId | None = Field(None, description="Only requests about this crawl (its whole id).")
    since: Since | None = None
