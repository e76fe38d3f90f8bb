"""The command line. Only what is needed to parse the command is imported before it runs.

Exit codes: 0 done · 1 finished with dead letters, or `audit` found violations · 2 usage · 3 interrupted, resumable ·
4 a part is missing, down or damaged · 70 a bug in Curtsy.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable

from curtsy.core.errors import CurtsyError, UsageError
from curtsy.core.observe import announce

DONE = 0
DEAD_LETTERS = 1
USAGE = 2
INTERRUPTED = 3
UNAVAILABLE = 4
OUR_ERROR = 70


class Interrupted(SystemExit):
    """Ctrl-C before a crawl handles it. Not KeyboardInterrupt: the parser and the interpreter would choose other exit
    codes."""


def _interrupt(*_: object) -> None:
    raise Interrupted(INTERRUPTED)


def main() -> None:
    """Run a command; every expected error is one message that says what to do."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        sys.exit(exit_code(_command))
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, before)


def _command() -> object:
    # Imports create little garbage: commands.py collects it again once the command is imported.
    gc.disable()
    # Pydantic would read the metadata of every installed package for plugins, which takes 8 ms.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from curtsy.cli.app import app  # behind the handler: Ctrl-C during this import must end with our exit code

    code = app(standalone_mode=False)
    sys.stdout.flush()
    return code


def exit_code(run: Callable[[], object]) -> int:
    """Run, and say what went wrong."""
    try:
        code = run()
    except (Interrupted, KeyboardInterrupt):
        code = _interrupted()
    except BrokenPipeError:
        code = _closed_pipe()
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        code = _closed_pipe()  # the parser turns it into SystemExit
    except Exception as error:
        code = _failed(error)
    return code if isinstance(code, int) else DONE


def _closed_pipe() -> int:
    """`curtsy ... | head`: the reader closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return DONE


def _failed(error: Exception) -> int:
    if isinstance(error, CurtsyError):
        announce(f"curtsy: {error}")
        return USAGE if isinstance(error, UsageError) else UNAVAILABLE
    if isinstance(error, OSError):
        announce(f"curtsy: {error}. Check that it exists, is accessible and has free space.")
        return UNAVAILABLE
    if type(error).__name__ == "Abort":
        return _interrupted()
    if hasattr(error, "format_message"):  # the parser's own errors
        return _usage_error(error)
    traceback.print_exception(error)
    announce("curtsy: this is a bug in Curtsy. Please report it with the lines above.")
    return OUR_ERROR


def _usage_error(error: Exception) -> int:
    """The command line is invalid: one line with the problem and where to look."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        return USAGE
    message = " ".join(error.format_message().split())  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    command = "curtsy" if context is None else context.command_path
    ending = "" if message.endswith((".", "?")) else "."
    announce(f"curtsy: {message}{ending} Run `{command} --help` for the options.")
    return USAGE


def _interrupted() -> int:
    announce("Interrupted; no crawl was started.")
    return INTERRUPTED
