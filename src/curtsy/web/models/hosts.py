"""Hosts over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from curtsy.core.model import HostState
from curtsy.frontier.inspect import Sight
from curtsy.web.models.crawls import when
from curtsy.web.paging import Paged

Source = Literal["operator", "robots", "adaptive", "crawls"]


class HostSummary(BaseModel):
    """A host in a list: what the store remembers of it."""

    host: str
    next_allowed: datetime | None = Field(description="Not asked before; null: it may be asked.")
    blocked_until: datetime | None = Field(description="It told us to wait, failed, or was blocked; null: it is not.")
    denied: bool = Field(description="On the deny list: never asked.")
    failures: int = Field(description="Requests that failed since the last answer.")
    slow: bool = Field(description="Served in the lane `slow`.")
    last_answer: datetime | None


class Delay(BaseModel):
    """Seconds from the start of a request to the next one, and where they come from."""

    in_force_s: float
    source: Source = Field(description="Whose wish is the longest; `crawls`: of the crawls there, or the settings.")
    operator_s: float | None
    robots_s: float | None
    adaptive_s: float | None


class RobotsOf(BaseModel):
    """The rules of one origin."""

    origin: str
    verdict: str = Field(description="`rules`, `allow`, `forbid` (unreachable), or why it is not asked for.")
    fetched: datetime | None
    expires: datetime | None


class QueueOf(BaseModel):
    """A crawl's work on the host."""

    crawl: str
    state: str = Field(description="`open`, `empty`, or `dead` for this crawl.")
    reason: str | None
    urls: int = Field(description="Ever added.")


class HostStatus(HostSummary):
    """Everything known of a host, from the store and the frontier."""

    why: list[str] = Field(description="For people: whether it is asked, and why not.")
    delay: Delay
    per_host: int | None = Field(description="What the operator allows under way at once; null: not said.")
    under_way: int | None = Field(description="Requests under way; null: the frontier is away.")
    robots: list[RobotsOf]
    queues: list[QueueOf] = Field(description="Of the newest 100 crawls there.")


class HostsQuery(Paged):
    notable: bool = Field(False, description="Only blocked, failing, slow or denied ones.")


class Block(BaseModel):
    """For how long a host is left alone."""

    model_config = ConfigDict(extra="forbid")

    seconds: float = Field(gt=0, le=31 * 86400, allow_inf_nan=False)


class OwnDelay(BaseModel):
    """What the operator wants for a host; null or left out takes it back."""

    model_config = ConfigDict(extra="forbid")

    delay_s: float | None = Field(None, ge=0, le=86400, allow_inf_nan=False)
    per_host: int | None = Field(None, ge=1, le=64)


def summary_of(state: HostState, now_ms: int) -> HostSummary:
    return HostSummary.model_validate(_summary(state, now_ms))


def status_of(state: HostState, now_ms: int, seen: Sight | None, default_s: float, **fields: Any) -> HostStatus:
    known = _summary(state, now_ms)
    if seen is not None and seen.due_ms is not None:
        known["next_allowed"] = when(seen.due_ms) if seen.due_ms > seen.now_ms else None
    if seen is not None and seen.blocked_until_ms > max(seen.now_ms, state.blocked_until_ms):
        known["blocked_until"] = when(seen.blocked_until_ms)
    return HostStatus(
        **known,
        delay=_delay(state, seen, default_s),
        per_host=state.operator_per_host,
        under_way=None if seen is None else seen.slots_out,
        **fields,
    )


def _summary(state: HostState, now_ms: int) -> dict[str, Any]:
    next_ms = max(state.next_ms, state.blocked_until_ms)
    return {
        "host": state.host,
        "next_allowed": when(next_ms) if next_ms > now_ms else None,
        "blocked_until": when(state.blocked_until_ms) if state.blocked_until_ms > now_ms else None,
        "denied": state.denied,
        "failures": state.failures,
        "slow": state.slow,
        "last_answer": when(state.last_ok_ms),
    }


def _delay(state: HostState, seen: Sight | None, default_s: float) -> Delay:
    parts: dict[Source, int | None] = {
        "operator": state.operator_delay_ms,
        "robots": state.robots_delay_ms,
        "adaptive": state.adaptive_ms,
    }
    longest = max((ms or 0 for ms in parts.values()), default=0)
    in_force_ms = seen.delay_ms if seen is not None and seen.delay_ms else max(longest, int(default_s * 1000))
    source = next((name for name, ms in parts.items() if ms and ms >= in_force_ms), None)
    return Delay(
        in_force_s=in_force_ms / 1000,
        source=source or "crawls",
        operator_s=_seconds(state.operator_delay_ms),
        robots_s=_seconds(state.robots_delay_ms),
        adaptive_s=_seconds(state.adaptive_ms),
    )


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000
