"""Progress of a crawl: a live view on a terminal, a line every few seconds in a log, or nothing."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from curtsy.cli.show import note, number, reasons
from curtsy.cli.table_layout import middle
from curtsy.core.model import Counts
from curtsy.core.times import timestamp

if TYPE_CHECKING:
    from rich.console import Console

#: seconds between two lines in a log
EVERY_S = 5.0
#: seconds over which the rate is measured
WINDOW_S = 10.0
#: waiting hosts that the live view names
MOST_HOSTS = 5


class Made(NamedTuple):
    """Records of a crawl while they are made."""

    by_status: Mapping[str, int]
    #: pages or sites that wait for extraction
    left: int


class Progress(Protocol):
    def update(self, counts: Counts) -> None: ...

    def records(self, made: Made) -> None: ...

    def __enter__(self) -> Progress: ...

    def __exit__(self, *_: object) -> None: ...


def for_terminal(*, quiet: bool, most: int | None = None) -> Progress:
    """Progress goes to standard error: a live view on a terminal, lines elsewhere. `most`: max_pages of the crawl."""
    if quiet:
        return Silent()
    return LiveView(most) if sys.stderr.isatty() else Lines()


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

    def records(self, made: Made) -> None:
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
            hint = f"{until(counts)}; --give-up ends such waits" if counts.waiting and counts.waiting_hosts else ""
            note(sentence(counts, self._rate.add(now_s, counts.pages)) + hint)

    def records(self, made: Made) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + EVERY_S
            note(" ".join(records_line(made).split()))

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class LiveView:
    """A bar and a few lines that are drawn again with each update: there is no thread, and nothing else to pay for.

    The bar shows pages of max_pages, or settled among known URLs. The latter may move back: links add URLs.
    """

    def __init__(self, most: int | None = None, console: Console | None = None) -> None:
        # 0.07 s of start-up that only a terminal needs
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

        self._most = most
        self._rate = Rate()
        self._bar = Progress(BarColumn(bar_width=None), MofNCompleteColumn(), TimeElapsedColumn(), expand=True)
        self._task = self._bar.add_task("", total=None)
        self._live = Live(console=console or Console(stderr=True), transient=True, auto_refresh=False)

    def update(self, counts: Counts) -> None:
        settled = counts.done + sum(counts.skipped.values()) + sum(counts.failed.values())
        rate = self._rate.add(time.monotonic(), counts.pages)
        done, total = (settled, settled + counts.pending) if self._most is None else (counts.pages, self._most)
        self._draw(done, total, live_lines(counts, rate))

    def records(self, made: Made) -> None:
        done = sum(made.by_status.values())
        self._draw(done, done + made.left, [records_line(made)])

    def _draw(self, done: int, total: int, lines: list[str]) -> None:
        from rich.console import Group
        from rich.text import Text

        self._bar.update(self._task, completed=done, total=total)
        # Names of hosts come from pages: they are text, never markup.
        text = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
        self._live.update(Group(self._bar, text), refresh=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def live_lines(counts: Counts, rate: float | None) -> list[str]:
    """What a crawl does now, for a terminal of 80 columns."""
    lines = [f"fetched  {sentence(replace(counts, failed={}, waiting=''), rate)}"]
    waiting = counts.waiting_hosts
    lines.append(f"hosts    {counts.active_hosts:,} active, {len(waiting):,} waiting")
    lines += [
        f"           {middle(one.host, 36):<36} {one.cause}, next try in {math.ceil(one.in_s)} s"
        for one in waiting[:MOST_HOSTS]
    ]
    if len(waiting) > MOST_HOSTS:
        lines.append(f"           and {len(waiting) - MOST_HOSTS:,} more")
    if counts.failed or counts.failed_stages:
        lines.append(f"errors   {reasons(counts.failed | counts.failed_stages)}")
    if counts.waiting:
        # The lines above name the hosts that do not answer.
        what = counts.waiting.partition(":")[0] if waiting else counts.waiting
        give_up = "g to give up hosts that do not answer, " if waiting else ""
        lines.append(what[0].upper() + what[1:] + until(counts) + ".")
        lines.append(f"Press {give_up}Ctrl-C to stop and resume later.")
    return lines


def until(counts: Counts) -> str:
    """When the last host that does not answer is given up: `, until 2026-11-16T18:13:07Z`; empty if not known."""
    ends = [one.until_ms for one in counts.waiting_hosts if one.until_ms is not None]
    return f", until {timestamp(max(ends))}" if ends else ""


def records_line(made: Made) -> str:
    """`records  120 published, 40 held, 25 pages or sites to read`."""
    parts = [f"{n:,} {status}" for status, n in sorted(made.by_status.items(), reverse=True) if n]
    return "records  " + ", ".join([*parts, f"{made.left:,} to do"])


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
