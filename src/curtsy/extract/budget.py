"""What a crawl may spend on a language model: a call takes its maximum before, and is settled by its usage after."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from curtsy.core.claims import Usage


@dataclass(frozen=True, slots=True)
class Topic:
    """What a question is about: its usage is reported by schema and field."""

    #: name of the schema or rubric
    schema: str = ""
    #: paths of the leaves, or names of criteria; they share the usage of a call equally
    fields: tuple[str, ...] = ()


NO_TOPIC = Topic()


class Budget(Protocol):
    """What a crawl may spend, over all its processes. Costs are in the currency of the prices."""

    def take(self, most: Usage) -> bool:
        """Count the maximum usage of a call; return False, and count nothing, if it exceeds a limit."""
        ...

    def settle(self, most: Usage, used: Usage, topic: Topic = NO_TOPIC) -> None:
        """Replace the counted maximum by the actual usage."""
        ...


class Caps:
    """A budget within one process. None: no limit."""

    def __init__(self, max_tokens: int | None = None, max_cost: float | None = None) -> None:
        self.max_tokens, self.max_cost = max_tokens, max_cost
        self.spent = Usage()
        self._lock = threading.Lock()

    def take(self, most: Usage) -> bool:
        with self._lock:
            after = self.spent + most
            if exceeds(after, self.max_tokens, self.max_cost):
                return False
            self.spent = after
            return True

    def settle(self, most: Usage, used: Usage, _topic: Topic = NO_TOPIC) -> None:
        with self._lock:
            self.spent = self.spent + less(used, most)


def exceeds(spent: Usage, max_tokens: int | None, max_cost: float | None) -> bool:
    """Return whether the usage exceeds a limit."""
    tokens = spent.prompt_tokens + spent.completion_tokens
    return (max_tokens is not None and tokens > max_tokens) or (max_cost is not None and spent.cost > max_cost)


def less(used: Usage, most: Usage) -> Usage:
    """Return the usage to add where `most` was counted and `used` is the actual usage."""
    return used + Usage(
        calls=-most.calls,
        cached=-most.cached,
        prompt_tokens=-most.prompt_tokens,
        completion_tokens=-most.completion_tokens,
        cost=-most.cost,
    )
