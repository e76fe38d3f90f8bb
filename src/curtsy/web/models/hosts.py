"""Hosts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from curtsy.core.model import HostState
from curtsy.frontier.inspect import HostSnapshot
from curtsy.web.models.fields import Time, fill
from curtsy.web.paging import Paged

Source = Literal["operator", "robots", "adaptive", "crawls"]


class HostSummary(BaseModel):
    """A host in a list, as stored."""

    host: str
    next_allowed: Time | None = Field(description="No request before this time; null: requests are allowed now.")
    blocked_until: Time | None = Field(
        description="The host asked us to wait, failed, or was blocked; null: it is not blocked."
    )
    denied: bool = Field(description="On the deny list: it gets no requests.")
    failures: int = Field(description="Failed requests since the last response.")
    slow: bool = Field(description="Served in the lane `slow`.")
    last_answer: Time | None


class Delay(BaseModel):
    """Seconds from the start of a request to the start of the next one, and their source."""

    in_force_s: float
    source: Source = Field(
        description="Which value is the longest; `crawls`: that of the crawls of the host, or of the settings."
    )
    operator_s: float | None
    robots_s: float | None
    adaptive_s: float | None


class RobotsOf(BaseModel):
    """The robots.txt rules of one origin."""

    origin: str
    verdict: str = Field(description="`rules`, `allow`, `forbid` (unreachable), or why it is not requested.")
    fetched: Time | None
    expires: Time | None


class QueueOf(BaseModel):
    """The queue of one crawl on the host."""

    crawl: str
    state: str = Field(description="`open`, `empty`, or `dead` for this crawl.")
    reason: str | None
    urls: int = Field(description="URLs ever added.")


class HostStatus(HostSummary):
    """The full state of a host, from the store and the frontier."""

    why: list[str] = Field(description="For people: whether the host gets requests, and why not.")
    delay: Delay
    per_host: int | None = Field(description="Concurrent requests that the operator allows; null: not set.")
    under_way: int | None = Field(description="Requests in flight; null: the frontier is unavailable.")
    robots: list[RobotsOf]
    queues: list[QueueOf] = Field(description="Of the host's newest 100 crawls.")


class HostsQuery(Paged):
    notable: bool = Field(False, description="Only blocked, failing, slow or denied hosts.")


class Block(BaseModel):
    """How long a host gets no requests."""

    model_config = ConfigDict(extra="forbid")

    seconds: float = Field(gt=0, le=31 * 86400, allow_inf_nan=False)


class OwnDelay(BaseModel):
    """The operator's values for a host; a null or omitted field removes the value."""

    model_config = ConfigDict(extra="forbid")

    delay_s: float | None = Field(None, ge=0, le=86400, allow_inf_nan=False)
    per_host: int | None = Field(None, ge=1, le=64)


def summary_of(state: HostState, now_ms: int) -> HostSummary:
    return HostSummary.model_validate(_summary(state, now_ms))


def status_of(state: HostState, now_ms: int, seen: HostSnapshot | None, default_s: float, **fields: Any) -> HostStatus:
    known = _summary(state, now_ms)
    if seen is not None and seen.due_ms is not None:
        known["next_allowed"] = seen.due_ms if seen.due_ms > seen.now_ms else None
    if seen is not None and seen.blocked_until_ms > max(seen.now_ms, state.blocked_until_ms):
        known["blocked_until"] = seen.blocked_until_ms
    return HostStatus.model_validate(
        known
        | fields
        | {
            "delay": _delay(state, seen, default_s),
            "per_host": state.operator_per_host,
            "under_way": None if seen is None else seen.slots_out,
        }
    )


def _summary(state: HostState, now_ms: int) -> dict[str, Any]:
    next_ms = max(state.next_ms, state.blocked_until_ms)
    return {
        "host": state.host,
        "next_allowed": next_ms if next_ms > now_ms else None,
        "blocked_until": state.blocked_until_ms if state.blocked_until_ms > now_ms else None,
        "denied": state.denied,
        "failures": state.failures,
        "slow": state.slow,
        "last_answer": state.last_ok_ms,
    }


def _delay(state: HostState, seen: HostSnapshot | None, default_s: float) -> Delay:
    parts = {"operator": state.operator_delay_ms, "robots": state.robots_delay_ms, "adaptive": state.adaptive_ms}
    longest = max(ms or 0 for ms in parts.values())
    in_force_ms = seen.delay_ms if seen is not None and seen.delay_ms else max(longest, int(default_s * 1000))
    source = next((name for name, ms in parts.items() if ms and ms >= in_force_ms), "crawls")
    seconds = {f"{name}_s": None if ms is None else ms / 1000 for name, ms in parts.items()}
    return fill(Delay, None, in_force_s=in_force_ms / 1000, source=source, **seconds)
