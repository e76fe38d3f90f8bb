"""Patterns from schemas and rubrics: google-re2, which takes time linear in the text for every pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from curtsy.core.errors import UsageError

#: memory of a pattern's automaton in bytes; with less it is slow on ordinary text
_MEMORY_BYTES = 4 << 20


@lru_cache(maxsize=4096)
def compiled(
    pattern: str, *, max_length: int = 2_000, max_program: int | None = None, case_sensitive: bool = True
) -> Any:
    """Return the compiled pattern; raise UsageError if it is invalid, too long or too expensive."""
    if len(pattern) > max_length:
        raise UsageError(f"the pattern {pattern[:60]!r}... is longer than {max_length} characters")
    options = re2.Options()
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    options.case_sensitive = case_sensitive
    try:
        found = re2.compile(pattern, options)
    except re2.error as error:
        detail = error.args[0] if error.args else error
        detail = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else detail
        raise UsageError(f"the pattern {pattern[:200]!r} is not valid in google-re2: {detail}") from error
    if max_program is not None and program_size(found) > max_program:
        raise UsageError(f"the pattern {pattern[:200]!r} is too expensive: use fewer repetitions, or smaller classes")
    return found


def program_size(pattern: Any) -> int:
    """Return the number of steps of its program; 0 if this build of google-re2 does not provide it."""
    size = getattr(getattr(pattern, "_regexp", None), "ProgramSize", None)
    return int(size()) if size is not None else 0
