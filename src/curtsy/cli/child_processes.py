"""A small parent for long-running processes: it passes signals on and restarts nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from curtsy.cli import DONE, UNAVAILABLE
from curtsy.cli.show import note
from curtsy.core.settings import Settings

_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}


def environment(settings: Settings, config: Path | None) -> dict[str, str]:
    """The environment that gives a child the same settings, and ends it with this process."""
    found = dict(os.environ) | {"CURTSY_DATA_DIR": str(settings.data_dir), "CURTSY_PARENT_PID": str(os.getpid())}
    if config is not None:
        found["CURTSY_CONFIG"] = str(config)
    return found


def keep(commands: list[list[str]], settings: Settings, config: Path | None) -> int:
    """Wait until all have ended. If one exits unexpectedly, stop the others: the supervisor then restarts all."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    variables = environment(settings, config)
    # New sessions: Ctrl-C reaches only this process, which passes it on.
    started = [
        subprocess.Popen(command, env=variables, start_new_session=True, preexec_fn=_unblock)  # noqa: PLW1509
        for command in commands
    ]
    code, asked = DONE, 0
    while alive := [process for process in started if process.poll() is None]:
        if len(alive) < len(started) and not asked:
            code = UNAVAILABLE
            note("curtsy: a process exited unexpectedly; stopping the others.")
        else:
            received = signal.sigtimedwait(_SIGNALS, 1.0)
            if received is None or received.si_signo == signal.SIGCHLD:
                continue
        asked += 1
        # Celery ends gently with SIGTERM, and at once with SIGQUIT.
        for process in alive:
            process.send_signal(signal.SIGTERM if asked == 1 else signal.SIGQUIT)
    if not asked:
        note("curtsy: the process exited unexpectedly." if len(started) == 1 else "curtsy: all processes have exited.")
    return code if asked else UNAVAILABLE


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
