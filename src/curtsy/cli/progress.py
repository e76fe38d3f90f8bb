"""Progress of a crawl: a live view on a terminal, a line every few seconds in a log, or nothing."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Protocol

from curtsy.cli.show import note, number
from curtsy.core.model import Counts

#: seconds between two lines in a log
EVERY_S = 5.0
#: seconds over which the rate is measured
WINDOW_S = 10.0


class Progress(Protocol):
    def update(self, counts: Counts) -> None: ...

    def __enter__(self) -> Progress: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def for_terminal(*, quiet: bool, most: int | None = None) -> Progress:
    """Progress goes to standard error: a live view on a terminal, lines elsewhere. `most`: max_pages of the crawl."""
    if quiet:
        return Silent()
    return Bar(most) if sys.stderr.isatty() else Lines()


class Rate:
    """Pages per second over the last seconds; None before the second measurement."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def add(self, now_s: float, pages: int) -> float | None:
        self._seen.append((now_s, pages))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - WINDOW_S:
            del self._seen[0]
        past_s, past_pages = self._seen[0]
        return (pages - past_pages) / (now_s - past_s) if now_s > past_s else None


class Silent:
    def update(self, counts: Counts) -> None:
        pass

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Lines:
    """One line every few seconds, for logs."""

    def __init__(self) -> None:
        self._rate = Rate()
        self._next_s = 0.0

    def update(self, counts: Counts) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + EVERY_S
            note(sentence(counts, self._rate.add(now_s, counts.pages)))

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Bar:
    """A live bar: pages of max_pages, or settled among known URLs. The latter may move back: links add URLs."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        # 0.07 s of start-up that only a terminal needs
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        self._rate = Rate()
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=5,
        )
        self._task = self._bar.add_task("starting", total=None)

    def update(self, counts: Counts) -> None:
        settled = counts.done + sum(counts.skipped.values()) + sum(counts.failed.values())
        rate = self._rate.add(time.monotonic(), counts.pages)
        about = sentence(counts, rate)
        done, total = (settled, settled + counts.pending) if self._most is None else (counts.pages, self._most)
        self._bar.update(self._task, completed=done, total=total, description=about)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def sentence(counts: Counts, rate: float | None) -> str:
    """`120 pages, 14.2/s, 80 pending, 3 skipped, 1 dead letter`."""
    parts = [number(counts.pages, "page")]
    if rate is not None:
        parts.append(f"{rate:,.1f}/s")
    render = f" ({counts.pending_render:,} for a browser)" if counts.pending_render else ""
    parts.append(f"{counts.pending:,} pending{render}")
    if skipped := sum(counts.skipped.values()):
        parts.append(f"{skipped:,} skipped")
    if failed := sum(counts.failed.values()):
        parts.append(number(failed, "dead letter"))
    if counts.waiting:
        parts.append(counts.waiting)
    return ", ".join(parts)
