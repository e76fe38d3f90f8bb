"""Waiting for events. The limits are far above what anything needs: a busy machine is no failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LONG_S = 90.0


def wait_for(look: Callable[[], T | None], within_s: float = LONG_S, every_s: float = 0.02) -> T:
    """What `look` finds, as soon as it finds something."""
    end = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(every_s)
    return found


def until(condition: Callable[[], bool], within_s: float = LONG_S, every_s: float = 0.02) -> None:
    wait_for(condition, within_s, every_s)
