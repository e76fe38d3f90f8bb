"""Runs of URLs: leases of a host without a delay that use one slot, one after another, on one kept connection.

The first URL of a run has the slot, each other URL follows the one before it. A request starts only within `WINDOW_S`
of the call that leased its run, and only if the response before it shows no strain, so that the state of the frontier
at that call is still valid. docs/frontier.md has the invariant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from curtsy.core.clock import boot
from curtsy.core.model import Lease, Page

#: nothing of a run starts later than this after the call that leased it
WINDOW_S = 0.25
#: URLs for which a process leases one slot at most
_LONGEST = 32
#: URLs that the runs of a process have together: about as many as it fetches and parses within the window
_TOGETHER = 512
#: runs are made to end within this time, so that few of their URLs are returned unused
_PLANNED_S = 0.15
#: weight of a new sample in the mean
_WEIGHT = 0.1

Follower = tuple[Lease, Page | None]


class UrlRuns:
    """One per process: the URLs that wait for the request before them to end."""

    def __init__(self, may_continue: Callable[[], bool]) -> None:
        """`may_continue`: the process takes more work now."""
        self._may_continue = may_continue
        #: by the fence of the URL before it
        self._after: dict[int, Follower] = {}
        self._mean_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._after)

    def clear(self) -> None:
        self._after.clear()

    @property
    def leases(self) -> Iterable[Lease]:
        return (lease for lease, _ in self._after.values())

    def add(self, lease: Lease, previous: Page | None) -> None:
        """This lease waits for the one that it follows."""
        self._after[lease.follows] = (lease, previous)

    def note(self, duration_s: float) -> None:
        """How long a request to a host without a delay took."""
        self._mean_s += _WEIGHT * (duration_s - self._mean_s)

    def longest(self) -> int:
        """For how many URLs a slot is leased at most."""
        in_time = int(_PLANNED_S / self._mean_s) if self._mean_s > 0 else _LONGEST
        return max(1, min(_LONGEST, in_time))

    def room(self, under_way: int) -> int:
        """How many more URLs runs may have together, given the number of requests in flight."""
        return max(0, _TOGETHER - under_way - len(self._after))

    def next_after(self, lease: Lease) -> Follower | None:
        """The URL that uses the slot next; None: the run ends here, and `rest_after` has what is left of it."""
        if lease.fence not in self._after or boot() - lease.asked_at > WINDOW_S or not self._may_continue():
            return None
        return self._after.pop(lease.fence)

    def rest_after(self, lease: Lease) -> list[Lease]:
        """Removes the rest of a run, the last URL first: each returns to the head of its list."""
        rest: list[Lease] = []
        fence = lease.fence
        while fence in self._after:
            follower, _ = self._after.pop(fence)
            rest.append(follower)
            fence = follower.fence
        return rest[::-1]

    def stop(self, concerns: Callable[[Lease], bool]) -> list[Lease]:
        """Removes the URLs that match, the last of each run first. `concerns` must match whole runs."""
        if not self._after:
            return []
        rest = sorted((lease for lease in self.leases if concerns(lease)), key=lambda lease: -lease.fence)
        for lease in rest:
            del self._after[lease.follows]
        return rest
