"""Charts as plain SVG: the geometry is made here, the templates write it down. Every chart says in words what it shows.

A chart is 1000 units wide and 100 high, and is stretched to its place; its labels are text beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from curtsy.core.model import SUBRESOURCE, Kind, Request
from curtsy.core.outcome import BROKEN_OFF
from curtsy.web.dashboard import words

WIDTH, HEIGHT = 1000.0, 100.0
#: of a stacked chart, from the bottom up
CLASSES = ("ok", "moved", "client", "server", "none")
NAMES = {"ok": "2xx", "moved": "3xx", "client": "4xx", "server": "5xx", "none": "no answer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    kind: str
    #: shown when pointed at
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    bars: tuple[Bar, ...]
    #: what the top of the chart stands for, with its unit
    top: str
    begin_ms: int
    end_ms: int
    #: the chart in words
    says: str
    #: kinds that occur, with their sums, for the legend
    legend: tuple[tuple[str, str, int], ...] = ()

    @property
    def empty(self) -> bool:
        return not self.bars


def nice(value: float) -> float:
    """The next of 1, 1.5, 2, 3, ...: a top that can be read."""
    if value <= 0:
        return 1.0
    scale = 1.0
    while value / scale > 10:
        scale *= 10
    while value / scale <= 1:
        scale /= 10
    return next(step for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if value / scale <= step) * scale


def _label(top: float) -> str:
    return f"{top:,.0f}" if top == int(top) else f"{top:g}"


def rates(counts: Sequence[int], ends_ms: Sequence[int], what: str = "pages") -> Chart:
    """How many per second in each part of a time."""
    per_s = [n * 1000 / (ends_ms[k + 1] - ends_ms[k]) for k, n in enumerate(counts)]
    top = nice(max(per_s, default=0.0))
    step = WIDTH / max(1, len(counts))
    bars = tuple(
        Bar(
            x=round(k * step + step * 0.1, 2), y=round(HEIGHT - HEIGHT * value / top, 2), width=round(step * 0.8, 2),
            height=round(HEIGHT * value / top, 2), kind="pages",
            says=f"{words.clock(words.moment(ends_ms[k]))}: {words.rate(value)} {what} per second, {counts[k]:,}",
        )
        for k, value in enumerate(per_s)
        if value
    )  # fmt: skip
    busiest = max(per_s, default=0.0)
    said = (
        f"{sum(counts):,} {what} in {words.span((ends_ms[-1] - ends_ms[0]) / 1000)}, "
        f"at most {words.rate(busiest)} per second"
        if bars
        else f"No {what} in this time"
    )
    return Chart(
        bars=bars, top=f"{_label(top)}/s", begin_ms=ends_ms[0], end_ms=ends_ms[-1], says=said,
    )  # fmt: skip


def columns(counts: Sequence[int], ends_ms: Sequence[int], what: str, kind: str) -> Chart:
    """How many in each part of a time; `what` is one of them."""
    top = nice(max(counts, default=0))
    step = WIDTH / max(1, len(counts))
    bars = tuple(
        Bar(
            x=round(k * step + step * 0.1, 2), y=round(HEIGHT - HEIGHT * n / top, 2), width=round(step * 0.8, 2),
            height=round(HEIGHT * n / top, 2), kind=kind,
            says=f"{words.clock(words.moment(ends_ms[k]))}: {words.count(n, what)}",
        )
        for k, n in enumerate(counts)
        if n
    )  # fmt: skip
    said = words.count(sum(counts), what) if bars else f"No {what}s"
    return Chart(bars=bars, top=_label(top), begin_ms=ends_ms[0], end_ms=ends_ms[-1], says=said)


def answers(requests: Sequence[Request], parts: int = 48) -> Chart | None:
    """Requests over time, stacked by the class of their answers."""
    if not requests:
        return None
    begin, end = requests[0].start_ms, max(request.start_ms for request in requests) + 1
    step_ms = max(1, -(-(end - begin) // parts))
    stacks = [dict.fromkeys(CLASSES, 0) for _ in range(parts)]
    for request in requests:
        part = min(parts - 1, (request.start_ms - begin) // step_ms)
        stacks[part][words.kind_of_status(request.status, request.fault)] += 1
    top = nice(max(sum(stack.values()) for stack in stacks))
    bars: list[Bar] = []
    step = WIDTH / parts
    for k, stack in enumerate(stacks):
        y = HEIGHT
        for kind, n in stack.items():
            if n:
                height = HEIGHT * n / top
                y -= height
                at = words.clock(words.moment(begin + k * step_ms))
                bars.append(
                    Bar(x=round(k * step + step * 0.1, 2), y=round(y, 2), width=round(step * 0.8, 2),
                        height=round(height, 2), kind=kind, says=f"{at}: {n:,} × {NAMES[kind]}")
                )  # fmt: skip
    sums = {kind: sum(stack[kind] for stack in stacks) for kind in CLASSES}
    said = ", ".join(f"{n:,} {NAMES[kind]}" for kind, n in sums.items() if n)
    return Chart(
        bars=tuple(bars), top=_label(top), begin_ms=begin, end_ms=begin + step_ms * parts,
        says=f"{len(requests):,} requests: {said}", legend=tuple((k, NAMES[k], n) for k, n in sums.items() if n),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request of a timeline, and the wait that was due before it."""

    request: Request
    kind: str
    x: float
    width: float
    #: from where the delay counts to where it ended
    delay_x: float
    delay_width: float
    #: seconds since the delay began to count; None: it is the first
    waited_s: float | None
    #: began before the delay had passed
    early: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    rows: tuple[Row, ...]
    begin_ms: int
    end_ms: int
    says: str


def timeline(requests: Sequence[Request]) -> Timeline | None:
    """The requests of a host one below the other, each with the delay that it had to wait for."""
    shown = [request for request in requests if request.kind != SUBRESOURCE]
    if not shown:
        return None
    begin, end = shown[0].start_ms, max(request.end_ms for request in shown)
    scale = WIDTH / max(1, end - begin)
    rows: list[Row] = []
    since_ms: int | None = None
    for request in shown:
        waited_ms = None if since_ms is None else request.start_ms - since_ms
        length_ms = max(0, request.end_ms - request.start_ms)
        rows.append(
            Row(
                request=request, kind=words.kind_of_status(request.status, request.fault),
                x=round((request.start_ms - begin) * scale, 2), width=round(max(4.0, length_ms * scale), 2),
                delay_x=0.0 if since_ms is None else round(max(0, since_ms - begin) * scale, 2),
                delay_width=0.0 if since_ms is None else round(request.delay_ms * scale, 2),
                waited_s=None if waited_ms is None else waited_ms / 1000,
                early=waited_ms is not None and request.per_host == 1 and waited_ms < request.delay_ms,
            )
        )  # fmt: skip
        since_ms = max(since_ms or 0, _counts_from(request))
    early = sum(row.early for row in rows)
    held = "every one waited for the delay" if not early else f"{early} began before the delay had passed"
    said = f"{words.count(len(rows), 'request')} in {words.span((end - begin) / 1000)}: {held}"
    return Timeline(rows=tuple(rows), begin_ms=begin, end_ms=end, says=said)


def _counts_from(request: Request) -> int:
    """As `audit` judges it: from the start, or from the end of what we broke off, of what is presumed, of a visit."""
    from_end = request.nature == "presumed" or request.fault in BROKEN_OFF or request.kind == Kind.BROWSER
    return request.end_ms if from_end else request.start_ms
