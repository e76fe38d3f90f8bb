"""Charts as SVG: this module computes the geometry, the templates write it. Every chart has a text description.

A chart is 1000 units wide and 100 high, and is stretched to its place; its labels are text next to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from curtsy.core.model import SUBRESOURCE, Kind, Request
from curtsy.core.outcome import BROKEN_OFF
from curtsy.web.dashboard import words

WIDTH, HEIGHT = 1000.0, 100.0
#: the kinds in a stacked chart, from bottom to top
CLASSES = ("ok", "moved", "client", "server", "none")
NAMES = {"ok": "2xx", "moved": "3xx", "client": "4xx", "server": "5xx", "none": "no response"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    kind: str
    #: the tooltip
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    bars: tuple[Bar, ...]
    #: the value at the top of the chart, with its unit
    top: str
    begin_ms: int
    end_ms: int
    #: the chart as text
    says: str
    #: (kind, name, sum) of the kinds that occur
    legend: tuple[tuple[str, str, int], ...] = ()

    @property
    def empty(self) -> bool:
        return not self.bars


def nice(value: float) -> float:
    """The next of 1, 1.5, 2, 3, ... times a power of ten, as the top of an axis."""
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


def _bar(k: int, parts: int, value: float, top: float, kind: str, says: str, base: float = 0.0) -> Bar:
    """The bar of interval `k` of `parts`; `base` is the height of the bars below it."""
    step = WIDTH / max(1, parts)
    height = HEIGHT * value / top
    return Bar(
        x=round(k * step + step * 0.1, 2), y=round(HEIGHT - base - height, 2), width=round(step * 0.8, 2),
        height=round(height, 2), kind=kind, says=says,
    )  # fmt: skip


def _at(ms: int) -> str:
    return words.clock(words.moment(ms))


def rates(counts: Sequence[int], ends_ms: Sequence[int], what: str = "pages") -> Chart:
    """The rate per second in each interval."""
    per_s = [n * 1000 / (ends_ms[k + 1] - ends_ms[k]) for k, n in enumerate(counts)]
    busiest = max(per_s, default=0.0)
    top = nice(busiest)
    bars = tuple(
        _bar(k, len(counts), value, top, "pages",
             f"{_at(ends_ms[k])}: {words.rate(value)} {what} per second, {counts[k]:,}")
        for k, value in enumerate(per_s)
        if value
    )  # fmt: skip
    length = words.span((ends_ms[-1] - ends_ms[0]) / 1000)
    says = f"{sum(counts):,} {what} in {length}, at most {words.rate(busiest)} per second"
    return Chart(
        bars=bars, top=f"{_label(top)}/s", begin_ms=ends_ms[0], end_ms=ends_ms[-1],
        says=says if bars else f"No {what} in this time",
    )  # fmt: skip


def columns(counts: Sequence[int], ends_ms: Sequence[int], what: str, kind: str) -> Chart:
    """The number in each interval; `what` is the singular."""
    top = nice(max(counts, default=0))
    bars = tuple(
        _bar(k, len(counts), n, top, kind, f"{_at(ends_ms[k])}: {words.count(n, what)}")
        for k, n in enumerate(counts)
        if n
    )
    says = words.count(sum(counts), what) if bars else f"No {what}s"
    return Chart(bars=bars, top=_label(top), begin_ms=ends_ms[0], end_ms=ends_ms[-1], says=says)


def answers(requests: Sequence[Request], parts: int = 48) -> Chart | None:
    """Requests over time, stacked by the class of their responses."""
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
    for k, stack in enumerate(stacks):
        base = 0.0
        for kind, n in stack.items():
            if n:
                bars.append(_bar(k, parts, n, top, kind, f"{_at(begin + k * step_ms)}: {n:,} × {NAMES[kind]}", base))
                base += HEIGHT * n / top
    sums = {kind: sum(stack[kind] for stack in stacks) for kind in CLASSES}
    parts_text = ", ".join(f"{n:,} {NAMES[kind]}" for kind, n in sums.items() if n)
    return Chart(
        bars=tuple(bars), top=_label(top), begin_ms=begin, end_ms=begin + step_ms * parts,
        says=f"{len(requests):,} requests: {parts_text}", legend=tuple((k, NAMES[k], n) for k, n in sums.items() if n),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request in a timeline, and the delay before it."""

    request: Request
    kind: str
    x: float
    width: float
    #: where the delay starts, and its length
    delay_x: float
    delay_width: float
    #: seconds since the start of the delay; None for the first request
    waited_s: float | None
    #: started before the end of the delay
    early: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    rows: tuple[Row, ...]
    begin_ms: int
    end_ms: int
    says: str


def timeline(requests: Sequence[Request]) -> Timeline | None:
    """The requests of a host, one per row, each with the delay before it."""
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
    result = "every one waited for the delay" if not early else f"{early} started before the end of the delay"
    says = f"{words.count(len(rows), 'request')} in {words.span((end - begin) / 1000)}: {result}"
    return Timeline(rows=tuple(rows), begin_ms=begin, end_ms=end, says=says)


def _counts_from(request: Request) -> int:
    """As in `audit`: from the start, or from the end of an aborted, presumed or browser request."""
    from_end = request.nature == "presumed" or request.fault in BROKEN_OFF or request.kind == Kind.BROWSER
    return request.end_ms if from_end else request.start_ms
