"""Sources of evidence: texts of pages, stored with the records that cite them, so that spans stay valid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, text

from curtsy.store.rows import Insert


class Source(NamedTuple):
    """A piece of a page."""

    #: fingerprint of the page as hexadecimal digits
    page: str
    sha256: str
    #: `text` | `structured` | `attribute`
    kind: str
    url: str
    text: str


_keep = Insert("sources", "crawl, page, sha256", "crawl bigint, page text, sha256 text, kind text, url text, text text")
_cite = Insert("citations", "record, page", "record bigint, page text, crawl bigint")
_OF = text(
    "SELECT s.page, s.sha256, s.kind, s.url, s.text FROM citations c JOIN sources s ON s.crawl = c.crawl "
    "AND s.page = c.page WHERE c.record = :record ORDER BY s.page, s.sha256"
)


def keep(tx: Connection, crawl: int, record: int, cited: Iterable[Source]) -> None:
    """Store the sources that a record cites, except texts that exist."""
    fresh = {(one.page, one.sha256): one for one in cited}
    rows = [fresh[key] for key in sorted(fresh)]
    _keep(tx, [(crawl, one.page, one.sha256, one.kind, one.url, _storable(one.text)) for one in rows])
    _cite(tx, [(record, page, crawl) for page in sorted({one.page for one in rows})])


def of(tx: Connection, record: int) -> list[Source]:
    """Texts of the pages that a record cites, also those that another record of the same page cites."""
    return [Source(*row) for row in tx.execute(_OF, {"record": record})]


def _storable(given: str) -> str:
    # No database accepts half of a surrogate pair, and PostgreSQL no zero byte. The replacement has the same length.
    return given.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
