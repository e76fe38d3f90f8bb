"""The clocks: wall time in milliseconds, time since boot, and a check of the frontier server's clock."""

from __future__ import annotations

import time

from curtsy.core.errors import EpochLost

_BOOTTIME = time.CLOCK_BOOTTIME
_gettime = time.clock_gettime


def now_ms() -> int:
    """Milliseconds since the epoch, by this machine's clock."""
    return int(time.time() * 1000)


def boot() -> float:
    """Seconds since boot; suspend counts, so a slot cannot outlive a closed laptop lid."""
    return _gettime(_BOOTTIME)


class ServerClock:
    """A step of the server's time by more than 1 s counts as loss of Valkey: every stored time would be wrong."""

    STEP_S = 1.0

    def __init__(self) -> None:
        self._last: tuple[float, float, float] | None = None

    def observe(self, before: float, after: float, server_ms: int) -> None:
        """`before` and `after` are the boot clock around the call that answered `server_ms`."""
        server = server_ms / 1000
        last, self._last = self._last, (before, after, server)
        if last is None:
            return
        was_before, was_after, was_server = last
        passed = server - was_server
        if passed < before - was_after - self.STEP_S or passed > after - was_before + self.STEP_S:
            self._last = None
            raise EpochLost(
                f"The frontier server's clock stepped: it says {passed:.3f} s passed, this machine says "
                f"{before - was_after:.3f} to {after - was_before:.3f} s. The frontier is rebuilt."
            )
