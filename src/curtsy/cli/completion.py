"""`completion`: lets a shell complete commands and options with the Tab key."""

from __future__ import annotations

from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from curtsy.cli import show
from curtsy.core.errors import UsageError

#: the variable by which the script asks `curtsy` for words
VARIABLE = "_CURTSY_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def completion(shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print a script that completes commands in a shell."""
    if shell not in SHELLS:
        raise UsageError(f"There is no completion for {shell!r}. Use one of: {', '.join(SHELLS)}.")
    show.say(get_completion_script(prog_name="curtsy", complete_var=VARIABLE, shell=shell))
