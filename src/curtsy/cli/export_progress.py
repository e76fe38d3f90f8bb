"""The progress of an export: a line on standard error every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from curtsy.cli import show

_INTERVAL_S = 5.0


class ExportProgress:
    """Is called after each page. A short export says nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._said = clock()

    def __call__(self, pages: int) -> None:
        now = self._clock()
        if now - self._said >= _INTERVAL_S:
            self._said = now
            show.note(f"{show.number(pages, 'page')} so far, {pages / (now - self._began):.0f} per second")
