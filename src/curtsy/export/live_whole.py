"""An output that cannot grow, such as a Parquet file or an object: it is written again while its crawl runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from curtsy.export import pages as page_export
from curtsy.export.page_rows import PageRows
from curtsy.export.tables import Format
from curtsy.export.targets import ObjectPlace

#: Writing takes at most this share of the time of a crawl, because each write takes longer than the last.
SHARE = 0.05
#: seconds between two writes at least: a write to an object store has a price
LEAST_S = {Path: 1.0, ObjectPlace: 30.0}


class WholeOutput:
    """`refresh` replaces the output by one with all pages, if there are new ones and it is not too soon."""

    def __init__(
        self, rows: PageRows, out: Path | ObjectPlace, chosen: Format, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rows, self._out, self._chosen, self._clock = rows, out, chosen, clock
        self._least_s = LEAST_S[ObjectPlace if isinstance(out, ObjectPlace) else Path]
        self._upto = 0
        self._next_s = 0.0

    def refresh(self, upto: int) -> None:
        """`upto`: the number of the newest page."""
        begun = self._clock()
        if upto == self._upto or begun < self._next_s:
            return
        self.write()
        self._upto = upto
        ended = self._clock()
        self._next_s = ended + max(self._least_s, (ended - begun) * (1 / SHARE - 1))

    def write(self) -> int:
        """Write all pages; return their number."""
        return page_export.export(self._rows, self._out, self._chosen)
