"""Fail points: the chaos test can kill the process at the places where a kill is most critical.

`CURTSY_FAULT=commit.segments:3` kills this process with SIGKILL when it passes that point for the third time.
"""

from __future__ import annotations

import os
import re
import signal

#: every point, in the order a page passes them; docs/durability.md has the crash table
POINTS = (
    "release.before",
    "release.after",
    "commit.begin",
    "commit.segments",
    "commit.stored",
    "commit.pushed",
    "commit.settled",
    "commit.seen",
    "scan.read",
    "scan.closed",
    "reap.written",
    "rebuild.epoch",
    "rebuild.begun",
)
#: and those between the steps of a stage, for crawls that name a schema
STAGE_POINTS = ("stage.begin", "stage.stored", "stage.sent")
#: and those of a batch of questions for a language model
BATCH_POINTS = (
    "batch.begun", "batch.uploaded", "batch.creating", "batch.created", "batch.kept", "batch.merged", "batch.ended",
)  # fmt: skip
#: and those of a deletion
DELETION_POINTS = ("delete.moved", "delete.rows", "delete.planned", "delete.erased", "delete.emptied")

_name, _, _nth = os.environ.get("CURTSY_FAULT", "").partition(":")
_left = int(_nth or 1)


def point(name: str) -> None:
    """Kill the process here, if `CURTSY_FAULT` names this point."""
    global _left
    if name != _name:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


#: `CURTSY_SLOW_PAGE=/slow`: reading a page whose URL contains this never ends
slow_page = os.environ.get("CURTSY_SLOW_PAGE", "")


def be_slow(url: str) -> None:
    """Never return for a URL that contains `CURTSY_SLOW_PAGE`: loop in Python, or in `re` if the URL contains `-re`."""
    if slow_page not in url:
        return
    if "-re" in url:
        re.match("(?:a|aa)*$", "a" * 200 + "b")
    while True:
        pass
