"""How many leases a process asks for in each lane, and when it asks for one suspect alone.

A suspect is a URL whose worker died twice. It is leased solo: nothing else is in flight in the process meanwhile.
"""

from __future__ import annotations

from curtsy.core.model import Lane
from curtsy.core.settings import Settings
from curtsy.frontier.messages import LeaseReply

LANES = (Lane.HIGH, Lane.BATCH, Lane.SLOW)
#: leases per call: more gains little, and delays other processes on the server
BATCH = 64


class LanePlan:
    """One per process."""

    def __init__(self, settings: Settings, lanes: tuple[Lane, ...]) -> None:
        self._settings = settings
        self.lanes = lanes
        self.solo_wanted = False
        #: the suspect waits for a browser
        self._solo_render = False

    def begin(self, lanes: tuple[Lane, ...] | None) -> None:
        """A run begins; `lanes` replaces those that were served before."""
        self.lanes = lanes or self.lanes
        self.solo_wanted = False

    @property
    def nothing(self) -> list[tuple[Lane, int]]:
        """An exchange that leases nothing."""
        return [(lane, 0) for lane in self.lanes]

    def wants(self, others: int, slow: int, visits: int, room: int | None = None) -> list[tuple[Lane, int]]:
        """(lane, leases wanted), given what is in flight: in the slow lane, in browsers, and elsewhere.

        `room`: the number of requests whose documents fit in memory. Per lane, no more is leased than fits; at least
        one at a time.
        """
        wanted = self._free(others, slow, visits)
        if room is None:
            return wanted
        busy = others + slow + visits
        left = max(room - busy, 0 if busy else 1)
        return [(lane, min(n, left)) for lane, n in wanted]

    def _free(self, others: int, slow: int, visits: int) -> list[tuple[Lane, int]]:
        if self.solo_wanted:
            lane = Lane.BATCH if Lane.BATCH in self.lanes else self.lanes[0]
            return [(Lane.RENDER if self._solo_render else lane, 0 if others + slow + visits else 1)]
        free = dict.fromkeys(self.lanes, self._settings.concurrency - others)
        free[Lane.SLOW] = self._settings.slow_concurrency - slow
        free[Lane.RENDER] = self._settings.render_concurrency - visits
        return [(lane, max(0, min(BATCH, free[lane]))) for lane in self.lanes]

    def note(self, reply: LeaseReply, *, solo: bool) -> None:
        """`solo`: the exchange asked for one suspect alone."""
        # Lane high serves no suspects: they would delay work that must be served at once.
        suspects = reply.suspects if Lane.BATCH in self.lanes or Lane.SLOW in self.lanes else 0
        self.solo_wanted = suspects + reply.render_suspects > 0 or (self.solo_wanted and not solo)
        if not (self.solo_wanted and self._solo_render and not solo):
            self._solo_render = suspects == 0 and reply.render_suspects > 0
