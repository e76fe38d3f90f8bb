"""Keys that a person presses during a crawl on a terminal: `g` gives up hosts that do not answer."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from typing import Any

_GIVE_UP = b"g"


class Keys:
    """Without a terminal, or in the background, it listens to nothing."""

    def __init__(self, gives_up: bool = False) -> None:
        #: hosts that do not answer are given up as soon as nothing else is left
        self.gives_up = gives_up
        self._loop: asyncio.AbstractEventLoop | None = None
        self._modes: list[Any] | None = None

    def __enter__(self) -> Keys:
        return self

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        if not _is_in_foreground():
            return
        # Keys arrive without Enter; Ctrl-C still interrupts.
        self._modes = termios.tcgetattr(0)
        tty.setcbreak(0, termios.TCSADRAIN)
        self._loop = loop
        loop.add_reader(0, self._pressed)

    def _pressed(self) -> None:
        keys = os.read(0, 64)
        if not keys and self._loop is not None:
            self._loop.remove_reader(0)  # the terminal is gone
        self.gives_up = self.gives_up or _GIVE_UP in keys.lower()

    def __exit__(self, *_: object) -> None:
        if self._modes is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, self._modes)


def _is_in_foreground() -> bool:
    """A background job that changes the terminal is stopped by the kernel."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty() and os.tcgetpgrp(0) == os.getpgrp()
    except (OSError, ValueError):
        return False
