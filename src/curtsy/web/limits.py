"""Rate limits: a token bucket per key or address, in this process."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from curtsy.web.problems import Problem

#: callers in the table; the least recent one is dropped first, with a full bucket
_MOST_CALLERS = 10_000


class RateLimit:
    """`rate` requests per second on average, `burst` at once. Each process counts separately."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, burst
        self._lock = threading.Lock()
        #: caller -> (tokens, time of the last update)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, now_s: float | None = None) -> None:
        """Take one token, or raise the problem 429 with the time until the next one."""
        now = time.monotonic() if now_s is None else now_s
        with self._lock:
            tokens, at = self._buckets.pop(caller, (float(self._burst), now))
            tokens = min(float(self._burst), tokens + (now - at) * self._rate)
            taken = tokens >= 1.0
            self._buckets[caller] = (tokens - 1.0 if taken else tokens, now)
            if len(self._buckets) > _MOST_CALLERS:
                self._buckets.popitem(last=False)
        if not taken:
            wait_s = max(1, int((1.0 - tokens) / self._rate + 0.999))
            raise Problem(
                429, "too-many-requests", f"The limit is {self._rate:g} requests per second. Wait {wait_s} s.",
                headers={"Retry-After": str(wait_s)},
            )  # fmt: skip
