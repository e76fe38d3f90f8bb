"""`tinyweb`: hands its arguments to the tiny web's own command line."""

from __future__ import annotations

import typer

from curtsy.tinyweb.__main__ import main


def tinyweb(context: typer.Context) -> None:
    """Serve a small synthetic web for tests."""
    raise typer.Exit(main(context.args))
