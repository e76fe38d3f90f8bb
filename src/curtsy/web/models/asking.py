"""Parts of queries and bodies that several endpoints share."""

from __future__ import annotations

import time
from typing import Annotated

from pydantic import Field

from curtsy.core.times import since_ms

#: text that every database takes
_PRINTABLE = r"^[^\x00-\x1f\x7f]+$"

Word = Annotated[str, Field(pattern=_PRINTABLE, max_length=100)]
Name = Annotated[str, Field(pattern=_PRINTABLE, max_length=300)]
Address = Annotated[str, Field(pattern=_PRINTABLE, max_length=4000)]
#: an id, the beginning of one, or `last`
_ID = r"^([0-9a-f-]{1,36}|last)$"
_TIME = r"^([0-9]{1,6}[smhd]|[12][0-9]{3}-[0-9]{2}-[0-9]{2}([T ][0-9:.]{5,15}(Z|[+-][0-9]{2}:[0-9]{2})?)?)$"
#: what a value is that fits one of these
IN_WORDS = {
    _PRINTABLE: "text without control characters, and not none",
    _ID: "the id of a crawl, its beginning, or `last`",
    _TIME: "a time: 30m, 12h or 7d ago, or 2026-01-31, or 2026-01-31T12:00:00Z",
}
CrawlId = Annotated[str, Field(pattern=_ID, description="Id of a crawl, or `last`.")]
Since = Annotated[
    str,
    Field(
        pattern=_TIME,
        description="Only since then: `30m`, `12h` or `7d` ago, or a date or time as `2026-01-31[T12:00:00Z]` (UTC).",
    ),
]


def moment_ms(since: str | None) -> int:
    """0 without a moment."""
    return since_ms(since, time.time())
