"""Field types that several models share, and `fill`, which copies a stored value into a model."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field

from curtsy.core.times import since_ms

M = TypeVar("M", bound=BaseModel)

#: text that every database accepts
_PRINTABLE = r"^[^\x00-\x1f\x7f]+$"

Word = Annotated[str, Field(pattern=_PRINTABLE, max_length=100)]
Name = Annotated[str, Field(pattern=_PRINTABLE, max_length=300)]
Address = Annotated[str, Field(pattern=_PRINTABLE, max_length=4000)]
#: an id, its beginning, or `last`
_ID = r"^([0-9a-f-]{1,36}|last)$"
_TIME = r"^([0-9]{1,6}[smhd]|[12][0-9]{3}-[0-9]{2}-[0-9]{2}([T ][0-9:.]{5,15}(Z|[+-][0-9]{2}:[0-9]{2})?)?)$"
#: pattern -> the expected value in words, for validation errors
IN_WORDS = {
    _PRINTABLE: "non-empty text without control characters",
    _ID: "the id of a crawl, its beginning, or `last`",
    _TIME: "a time: 30m, 12h or 7d ago, or 2026-01-31, or 2026-01-31T12:00:00Z",
}
CrawlId = Annotated[str, Field(pattern=_ID, description="Id of a crawl, or `last`.")]
Since = Annotated[
    str,
    Field(
        pattern=_TIME,
        description="Only since this time: `30m`, `12h` or `7d` ago, or a date or time such as "
        "`2026-01-31[T12:00:00Z]` (UTC).",
    ),
]


def since_to_ms(since: str | None) -> int:
    """0 without a time."""
    return since_ms(since, time.time())


def from_ms(value: Any) -> Any:
    """Stored times are milliseconds since 1970."""
    return datetime.fromtimestamp(value / 1000, UTC) if isinstance(value, int) else value


Time = Annotated[datetime, BeforeValidator(from_ms)]


def fill(model: type[M], source: object, /, **others: Any) -> M:
    """A model whose fields come from `others` or else from the attributes of `source`; `<name>_ms` becomes a time."""
    given = dict(others)
    for name in model.model_fields.keys() - others.keys():
        given[name] = getattr(source, name) if hasattr(source, name) else from_ms(getattr(source, f"{name}_ms"))
    return model.model_validate(given)


def either(names: Iterable[str], model: BaseModel) -> None:
    """Exactly one of these fields must be given."""
    if sum(getattr(model, name) is not None for name in names) != 1:
        raise ValueError(f"give either {' or '.join(names)}")
