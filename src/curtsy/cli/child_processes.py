"""A small parent for processes that are meant to run until told to end: signals are passed on, nothing is restarted."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from curtsy.cli import DONE, UNAVAILABLE
from curtsy.cli.show import note
from curtsy.core.settings import Settings

_HEEDED = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}


def environment(settings: Settings, config: Path | None) -> dict[str, str]:
    """What makes a part read the same settings, and end with this process."""
    found = dict(os.environ) | {"CURTSY_DATA_DIR": str(settings.data_dir), "CURTSY_KEEPER": str(os.getpid())}
    if config is not None:
        found["CURTSY_CONFIG"] = str(config)
    return found


def keep(commands: list[list[str]], settings: Settings, config: Path | None) -> int:
    """Until all have ended. If one ends unasked the others are told to end too: whoever supervises starts all again."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)
    given = environment(settings, config)
    # Sessions of their own: Ctrl-C reaches this process only, which passes it on.
    started = [
        subprocess.Popen(command, env=given, start_new_session=True, preexec_fn=_unblock)  # noqa: PLW1509
        for command in commands
    ]
    code, asked = DONE, 0
    while alive := [process for process in started if process.poll() is None]:
        if len(alive) < len(started) and not asked:
            code = UNAVAILABLE
            note("curtsy: a part has ended by itself; the others are told to end.")
        else:
            heard = signal.sigtimedwait(_HEEDED, 1.0)
            if heard is None or heard.si_signo == signal.SIGCHLD:
                continue
        asked += 1
        # Celery ends gently with SIGTERM, and at once with SIGQUIT.
        for process in alive:
            process.send_signal(signal.SIGTERM if asked == 1 else signal.SIGQUIT)
    if not asked:
        note("curtsy: the only part has ended by itself." if len(started) == 1 else "curtsy: all parts have ended.")
    return code if asked else UNAVAILABLE


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
