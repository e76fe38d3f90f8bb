"""Caches scripts and styles that pages of a site share: fetched once per process and lifetime, not once per page."""

from __future__ import annotations

import re
from collections import OrderedDict

from curtsy.core.outcome import Outcome

KINDS = ("script", "stylesheet")
#: lifetime if the host names none
_USUAL_S = 300.0
_LONGEST_S = 3600.0
_MAX_BYTES = 32_000_000
_MAX_FILE_BYTES = 2_000_000
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,9})")


class AssetCache:
    """Evicts the least recently used. A key contains everything that the request sent beside its URL."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[object, tuple[float, Outcome]] = OrderedDict()
        self.size = 0

    def get(self, key: object, now: float) -> Outcome | None:
        found = self._held.get(key)
        if found is None:
            return None
        if found[0] <= now:
            self._drop(key)
            return None
        self._held.move_to_end(key)
        return found[1]

    def put(self, key: object, outcome: Outcome, now: float) -> None:
        lifetime_s = keeps_s(outcome)
        if lifetime_s <= 0 or len(outcome.body) > _MAX_FILE_BYTES:
            return
        self._drop(key)
        self._held[key] = (now + lifetime_s, outcome)
        self.size += len(outcome.body)
        while self.size > self._max_bytes:
            self._drop(next(iter(self._held)))

    def _drop(self, key: object) -> None:
        found = self._held.pop(key, None)
        if found is not None:
            self.size -= len(found[1].body)


def keeps_s(outcome: Outcome) -> float:
    """How long a response may be reused; 0: not at all."""
    if outcome.status != 200 or outcome.fault is not None or outcome.header("set-cookie") is not None:
        return 0.0
    said = ", ".join(outcome.header_all("cache-control")).lower()
    if "no-store" in said or "no-cache" in said or "private" in said or (outcome.header("vary") or "").strip() == "*":
        return 0.0
    found = _MAX_AGE.search(said)
    return min(float(found.group(1)), _LONGEST_S) if found else _USUAL_S
