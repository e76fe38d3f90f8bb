"""`python -m curtsy.services.reader_child`: the process that reads heavy pages. reader_process.py starts it."""

from __future__ import annotations

import json
import resource
import signal
import sys
from typing import Any

from curtsy.content.tree_reading import read

_MEMORY_BYTES = 4 << 30


def _done(request: dict[str, Any], body: bytes) -> Any:
    if request["task"] == "check":
        from curtsy.extract.sources import sources_of  # start-up: only pages for records need it

        sources_of("", request["url"], body, request["type"])
        return None
    return read(body, request["type"], request["url"], request["agent"], request["auto_render"])


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)  # its parent ends it
    given, taken = sys.stdin.buffer, sys.stdout.buffer
    while line := given.readline():
        request = json.loads(line)
        body = given.read(request["bytes"])
        signal.setitimer(signal.ITIMER_VIRTUAL, request["seconds"])
        answer = json.dumps(_done(request, body)).encode()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        taken.write(answer + b"\n")
        taken.flush()


if __name__ == "__main__":
    main()
