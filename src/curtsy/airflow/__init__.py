"""Curtsy in Airflow 3: crawls that hold no worker while they run, and host slots for tasks that fetch themselves.

Nothing else in Curtsy imports this package, and nothing but this package imports Airflow.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curtsy.airflow.held_slot import SlotExpired
    from curtsy.airflow.hook import CurtsyHook
    from curtsy.airflow.links import CurtsyCrawlLink
    from curtsy.airflow.operator import CurtsyCrawlOperator
    from curtsy.airflow.sensor import CurtsyCrawlSensor
    from curtsy.airflow.slots import current_slot, host_slot, polite_slot
    from curtsy.airflow.trigger import CurtsyCrawlTrigger, CurtsyHostSlotTrigger

#: name -> module. Loaded at first use, so that a triggerer does not load the operators.
_PLACES = {
    "CurtsyCrawlLink": "links",
    "CurtsyCrawlOperator": "operator",
    "CurtsyCrawlSensor": "sensor",
    "CurtsyCrawlTrigger": "trigger",
    "CurtsyHook": "hook",
    "CurtsyHostSlotTrigger": "trigger",
    "SlotExpired": "held_slot",
    "current_slot": "slots",
    "host_slot": "slots",
    "polite_slot": "slots",
}

#: deprecated name -> name; removed in the next version
_OLD_NAMES = {"TurnOver": "SlotExpired", "current_turn": "current_slot", "host_turn": "host_slot"}

__all__ = [
    "CurtsyCrawlLink", "CurtsyCrawlOperator", "CurtsyCrawlSensor", "CurtsyCrawlTrigger", "CurtsyHook",
    "CurtsyHostSlotTrigger", "SlotExpired", "current_slot", "host_slot", "polite_slot",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _OLD_NAMES:
        new = _OLD_NAMES[name]
        warnings.warn(f"curtsy.airflow.{name} is now called {new}", DeprecationWarning, stacklevel=2)
        name = new
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
