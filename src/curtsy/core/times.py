"""Parsing times that users type."""

from __future__ import annotations

from datetime import UTC, datetime

from curtsy.core.errors import UsageError

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def length_s(text: str) -> float:
    """`30s`, `30m`, `12h`, `7d`."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S or not number.replace(".", "", 1).isdigit():
        raise UsageError(f"{text!r} is not a duration. Write 30m, 12h or 90d.")
    return float(number) * _UNITS_S[unit]


def since_ms(text: str | None, now_s: float) -> int:
    """`30m`, `12h`, `7d`: an age before now. A date, or date and time (UTC unless it says otherwise). None: 0."""
    if text is None:
        return 0
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS_S and number.replace(".", "", 1).isdigit():
        return max(0, int((now_s - float(number) * _UNITS_S[unit]) * 1000))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time. Write 30m, 12h or 7d, or a date as 2026-01-31 or 2026-01-31T12:00."
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def timestamp(at_ms: int | None) -> str | None:
    """RFC 3339 in UTC, to the second; None for no time."""
    return None if not at_ms else datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
