"""`tinyweb`: hands its arguments to the tiny web's own command line."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    passed_on = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command(context_settings=passed_on)(tinyweb)


def tinyweb(context: typer.Context) -> None:
    """Serve a small synthetic web on loopback: many hosts, many faults (`--list`), an access log (`--help`)."""
    from curtsy.tinyweb.__main__ import main

    raise typer.Exit(main(context.args))
