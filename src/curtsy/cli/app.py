"""All commands, in the order in which --help lists them."""

from __future__ import annotations

import typer

from curtsy.cli import (
    crawl,
    delete,
    doctor,
    extract,
    failures,
    guests,
    hosts,
    keys,
    mcp,
    records,
    results,
    review,
    schedules,
    serve,
    state,
    submit,
    tinyweb,
    up,
    workers,
)

app = typer.Typer(
    name="curtsy",
    help="A polite, durable web crawler.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from curtsy import __version__

        typer.echo(__version__)
        raise typer.Exit


crawl.register(app)
submit.register(app)
state.register(app)
results.register(app)
failures.register(app)
hosts.register(app)
delete.register(app)
schedules.register(app)
records.register(app)
review.register(app)
extract.register(app)
up.register(app)
workers.register(app)
serve.register(app)
keys.register(app)
mcp.register(app)
guests.register(app)
tinyweb.register(app)
doctor.register(app)
