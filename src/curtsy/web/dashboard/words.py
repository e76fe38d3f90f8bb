"""Formats numbers, times and untrusted text for the pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from curtsy.control.explain_text import MEANINGS
from curtsy.web.models.failures import request_kind

#: characters that are invisible or change the text direction: replaced by a mark, so that nothing can hide
_UNSEEN = re.compile(
    r"[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
_MARK = "\ufffd"
_MORE_MEANINGS = {
    "server_error": "the site answered with a server error (5xx)",
    "rate_limited": "the site answered that we send too many requests (429)",
    "http_408": "the site timed out waiting for the request (408)",
    "http_425": "the site answered that the request came too early (425)",
    "bad_response": "the response of the site is not valid HTTP",
    "partial": "the site answered with only a part of the page (206)",
}
STATES = {
    "loading": "Seeds are still arriving.",
    "running": "Pages are being fetched.",
    "interrupted": "No process works on it. Start workers, or resume it with curtsy crawl --resume.",
    "paused": "No requests are sent until it is resumed.",
    "extracting": "All pages are fetched; records are being extracted.",
    "finished": "All URLs are settled.",
    "cancelled": "It was ended permanently.",
    "deleting": "It is being deleted.",
}


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def rate(value: float | None) -> str:
    """A rate per second with two to three significant digits."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def percent(value: float) -> str:
    return f"{value * 100:.0f} %" if value >= 0.1 or not value else f"{value * 100:.1f} %"


def size(bytes: float | None) -> str:
    if bytes is None:
        return "–"
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes >= factor:
            return f"{bytes / factor:,.1f} {unit}"
    return f"{bytes:.0f} B"


def span(seconds: float | None) -> str:
    """A duration, in two units at most."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 or not seconds else "under 1 ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 and seconds != int(seconds) else f"{seconds:.0f} s"
    for unit, length, smaller, part in (("min", 60, "s", 1), ("h", 3600, "min", 60), ("d", 86400, "h", 3600)):
        if seconds < length * (60 if unit == "min" else 24 if unit == "h" else 10**9):
            whole, rest = int(seconds // length), int(seconds % length // part)
            return f"{whole} {unit} {rest} {smaller}" if rest and whole < 10 else f"{whole} {unit}"
    return ""


def moment(at_ms: int | None) -> datetime | None:
    return None if not at_ms else datetime.fromtimestamp(at_ms / 1000, UTC)


def iso(at: datetime | None) -> str:
    return "" if at is None else at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def stamp(at: datetime | None) -> str:
    return "–" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock(at: datetime | None) -> str:
    return "–" if at is None else at.astimezone(UTC).strftime("%H:%M:%S")


def ago(at: datetime | None) -> str:
    """The same format as in dashboard.js."""
    if at is None:
        return "never"
    seconds = (datetime.now(UTC) - at).total_seconds()
    if abs(seconds) < 1.5:
        return "now"
    length = span(abs(seconds)) if abs(seconds) >= 60 else f"{abs(seconds):.0f} s"
    return f"{length} ago" if seconds > 0 else f"in {length}"


def foreign(text: Any, most: int = 300) -> str:
    """Untrusted text on one line: cut, and without invisible or direction-changing characters."""
    if text is None:
        return ""
    cleaned = inert(" ".join(str(text)[: most * 4].split()))
    return cleaned if len(cleaned) <= most else cleaned[: most - 1].rstrip() + "…"


def inert(text: str) -> str:
    """Replaces characters one by one, so that offsets and lines stay the same."""
    return _UNSEEN.sub(_MARK, text.replace("\r\n", " \n").replace("\r", "\n"))


def is_link(url: Any) -> bool:
    return isinstance(url, str) and url.startswith(("http://", "https://"))


def meaning(cause: str | None) -> str:
    """The meaning of a cause or reason."""
    return MEANINGS.get(cause or "") or _MORE_MEANINGS.get(cause or "") or ""


def plain(word: str | None) -> str:
    """`connection_lost` -> `connection lost`."""
    return (word or "").replace("_", " ")


_MOST_DETAIL = 1_000
#: a sentence about API calls
_CALLS = re.compile(r"(?<![^.])[^.]*\b(?:GET|POST|PUT|PATCH|DELETE) /v1/[^.]*\.")


def for_people(detail: str) -> str:
    """The detail of a problem, without sentences about API calls; cut, because it may quote user input."""
    detail = detail if len(detail) <= _MOST_DETAIL else detail[: _MOST_DETAIL - 1] + "…"
    return (_CALLS.sub("", detail) or detail) if "/v1/" in detail else detail


def iso_stamp(at: str | None) -> str:
    """The time stamp of an ISO 8601 text."""
    return "–" if not at else stamp(datetime.fromisoformat(at))


def count(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def kind_of_status(status: int, fault: str | None = None) -> str:
    """The CSS class of a response: ok, moved, client, server, none."""
    if fault or not status:
        return "none"
    return {2: "ok", 3: "moved", 4: "client", 5: "server"}.get(status // 100, "none")


FILTERS: dict[str, Callable[..., Any]] = {
    "number": number, "rate": rate, "percent": percent, "size": size, "span": span, "iso": iso, "stamp": stamp,
    "clock": clock, "ago": ago, "foreign": foreign, "inert": inert, "meaning": meaning, "plain": plain,
    "for_people": for_people, "iso_stamp": iso_stamp, "moment": moment, "count": count, "status_kind": kind_of_status,
    "request_kind": request_kind,
}  # fmt: skip
