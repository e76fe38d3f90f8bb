"""Running a crawl in this process and its helpers, with Ctrl-C as the brake: once to drain, twice to stop at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import uvloop

from curtsy import crawling, services
from curtsy.cli import DEAD_LETTERS, DONE, INTERRUPTED
from curtsy.cli.show import elapsed_s, note
from curtsy.model import Counts, Crawl, CrawlState
from curtsy.settings import Settings
from curtsy.store import crawls, summaries

#: beyond the drain, a helper gets this long to commit and leave
LEAVE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a crawl stands when the command ends."""

    crawl: Crawl
    counts: Counts
    hosts: int
    elapsed_s: float

    @property
    def interrupted(self) -> bool:
        return self.crawl.state not in (CrawlState.FINISHED, CrawlState.CANCELLED)

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        return DEAD_LETTERS if self.counts.failed else DONE


def drive(
    settings: Settings,
    what: Crawl | str,
    seeds: Iterable[str],
    on_progress: Callable[[Counts], None],
    processes: int = 1,
) -> Ended:
    """Submit a new crawl, or take up the one of that id, and run it until it ends or is interrupted."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_drive(settings, what, seeds, on_progress, processes))
