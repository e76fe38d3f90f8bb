"""`tinyweb`: passes its arguments to the command line of the tiny web."""

from __future__ import annotations

import typer

from curtsy.tinyweb.__main__ import main


def tinyweb(context: typer.Context) -> None:
    """Serve a small synthetic web for tests."""
    raise typer.Exit(main(context.args))
