"""Metrics of a process for Prometheus: fields in a dictionary, published as differences, rendered as text.

A field is a name with its labels, as Prometheus writes it: `curtsy_pages_total{status="2xx"}`. Processes of a fleet
come and go, so Prometheus cannot scrape them. Each process adds its new counts to sums on the frontier's server, and
`/metrics` reads them there. Gauges are computed on request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

#: name -> (type, help text)
METRICS: dict[str, tuple[str, str]] = {
    "curtsy_pages_total": (COUNTER, "Pages stored, as crawls count them."),
    "curtsy_urls_total": (COUNTER, "URLs settled, by result: done, skipped or failed."),
    "curtsy_responses_total": (COUNTER, "Responses by class of status; none where no answer came."),
    "curtsy_response_bytes_total": (COUNTER, "Bytes of response bodies, decoded."),
    "curtsy_fetch_seconds": (HISTOGRAM, "Time from a request's start to its end."),
    "curtsy_delay_seconds": (HISTOGRAM, "Delay of the host at each request."),
    "curtsy_commit_seconds": (HISTOGRAM, "Time that a commit took."),
    "curtsy_lease_expiries_total": (COUNTER, "Slots and URL leases that expired: their process died or hung."),
    "curtsy_store_retries_total": (COUNTER, "Transactions repeated, by cause: deadlock, disk_full or unavailable."),
    "curtsy_shift_seconds_total": (COUNTER, "Worker time of shifts."),
    "curtsy_shift_waiting_seconds_total": (
        COUNTER,
        "Worker time in gaps of over 50 ms with nothing in flight and nothing due.",
    ),
    "curtsy_shift_closing_seconds_total": (
        COUNTER,
        "Worker time in gaps of over 50 ms with only commits or scans in progress.",
    ),
    "curtsy_shifts_total": (COUNTER, "Shifts by lane and how they ended: done, time, stopped, late, broken."),
    "curtsy_api_seconds": (HISTOGRAM, "Time that the API took to answer."),
    "curtsy_queue_depth": (GAUGE, "Queues (crawl, host) in play; render: those with pages that wait for a browser."),
    "curtsy_due_hosts": (GAUGE, "Hosts that may receive a request now."),
    "curtsy_in_flight": (GAUGE, "Slots in use: requests in flight."),
    "curtsy_running_crawls": (GAUGE, "Crawls that are running."),
    "curtsy_llm_calls_total": (COUNTER, "Calls of a language model that asked for a field, of the newest crawls."),
    "curtsy_llm_tokens_total": (COUNTER, "Tokens of these calls, by kind: prompt or completion."),
    "curtsy_llm_cost_total": (COUNTER, "Cost of these calls, in the currency of the prices."),
    "curtsy_running_shifts": (GAUGE, "Shifts that are running."),
    "curtsy_dead_letters": (GAUGE, "Dead letters of all crawls, by cause."),
    "curtsy_outbox_rows": (GAUGE, "Stages that must still run, by kind."),
    "curtsy_outbox_age_seconds": (GAUGE, "Time that the oldest stage waits, by kind."),
    "curtsy_beat_age_seconds": (GAUGE, "Time since a dispatcher (Beat) ran; 3600 if none did in the last hour."),
    "curtsy_worker_processes": (GAUGE, "Processes of live workers."),
}
#: name -> deprecated name of a counter or gauge, written too until the next version
OLD_NAMES = {"curtsy_worker_processes": "curtsy_seats"}

#: upper ends of the buckets, in seconds
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

_fields: dict[str, float] = {}
_handed: dict[str, float] = {}


def field(name: str, labels: Mapping[str, object]) -> str:
    if not labels:
        return name
    parts = [f'{key}="{_escaped(value)}"' for key, value in sorted(labels.items())]
    return f"{name}{{{','.join(parts)}}}"


@lru_cache(4096)
def _key(name: str, labels: tuple[tuple[str, object], ...]) -> str:
    return field(name, dict(labels))


def _escaped(value: object) -> str:
    return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Counter:
    """A counter whose field is known in advance: for code that counts every page."""

    __slots__ = ("_field",)

    def __init__(self, name: str, **labels: object) -> None:
        self._field = field(name, labels)

    def inc(self, by: float = 1) -> None:
        _fields[self._field] = _fields.get(self._field, 0.0) + by


class Histogram:
    """A histogram whose fields are known in advance. Buckets are counted apart here and added up when they are written
    out."""

    __slots__ = ("_buckets", "_count", "_sum")

    def __init__(self, name: str, **labels: object) -> None:
        tops = [*(f"{top:g}" for top in BUCKETS), "+Inf"]
        self._buckets = [field(f"{name}_bucket", {**labels, "le": top}) for top in tops]
        self._sum, self._count = field(f"{name}_sum", labels), field(f"{name}_count", labels)

    def observe(self, seconds: float) -> None:
        bucket = self._buckets[bisect_left(BUCKETS, seconds)]
        _fields[bucket] = _fields.get(bucket, 0.0) + 1
        _fields[self._sum] = _fields.get(self._sum, 0.0) + seconds
        _fields[self._count] = _fields.get(self._count, 0.0) + 1


def inc(name: str, by: float = 1, **labels: object) -> None:
    key = _key(name, tuple(labels.items()))
    _fields[key] = _fields.get(key, 0.0) + by


@lru_cache(256)
def _prepared(name: str, labels: tuple[tuple[str, object], ...]) -> Histogram:
    return Histogram(name, **dict(labels))


def observe(name: str, seconds: float, **labels: object) -> None:
    """Count one value of a histogram."""
    _prepared(name, tuple(labels.items())).observe(seconds)


def gauge(fields: dict[str, float], name: str, value: float, **labels: object) -> None:
    """Adds a gauge to fields that are about to be rendered."""
    fields[field(name, labels)] = value


def drain() -> dict[str, float]:
    """The counts since the last call, and every new field, even at 0: an alert needs the value before the first
    increase. If publishing them fails, `restore` them."""
    found = {key: value - _handed.get(key, 0.0) for key, value in _fields.items() if value != _handed.get(key)}
    _handed.update(_fields)
    return found


def restore(deltas: Mapping[str, float]) -> None:
    for key, value in deltas.items():
        if value:
            _handed[key] = _handed.get(key, 0.0) - value
        else:
            _handed.pop(key, None)


def render(fields: Mapping[str, float]) -> str:
    """Prometheus text: every metric of METRICS that has fields, with HELP and TYPE."""
    lines: list[str] = []
    for name, (kind, said) in METRICS.items():
        own = _histogram(name, fields) if kind == HISTOGRAM else _plain(name, fields)
        if own:
            lines += [f"# HELP {name} {said}", f"# TYPE {name} {kind}", *own]
            if old := OLD_NAMES.get(name):
                renamed = [old + line.removeprefix(name) for line in own]
                lines += [f"# HELP {old} Deprecated: use {name}.", f"# TYPE {old} {kind}", *renamed]
    return "\n".join(lines) + "\n" if lines else ""


def _plain(name: str, fields: Mapping[str, float]) -> list[str]:
    return [f"{key} {_number(value)}" for key, value in sorted(fields.items()) if key.partition("{")[0] == name]


def _histogram(name: str, fields: Mapping[str, float]) -> list[str]:
    tops = [*(f"{top:g}" for top in BUCKETS), "+Inf"]
    lines: list[str] = []
    for labels in sorted(
        key.removeprefix(f"{name}_count") for key in fields if key.partition("{")[0] == f"{name}_count"
    ):
        inner = labels[1:-1]
        total = 0.0
        for top in tops:
            # `le` is in the sorted position of its name.
            parts = sorted([*_split(inner), f'le="{top}"'])
            key = f"{name}_bucket{{{','.join(parts)}}}"
            total += fields.get(key, 0.0)
            lines.append(f"{key} {_number(total)}")
        for part in ("sum", "count"):
            key = f"{name}_{part}{labels}"
            lines.append(f"{key} {_number(fields.get(key, 0.0))}")
    return lines


def _split(labels: str) -> list[str]:
    """`a="x",b="y"` -> its parts; a value may contain a comma."""
    parts: list[str] = []
    quoted, start = False, 0
    for at, letter in enumerate(labels):
        if letter == '"' and (at == 0 or labels[at - 1] != "\\"):
            quoted = not quoted
        elif letter == "," and not quoted:
            parts.append(labels[start:at])
            start = at + 1
    return [*parts, labels[start:]] if labels else []


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))
