"""The table of all commands, in the order in which --help lists them.

Summaries are here so that `curtsy --help` imports no command; a command's own help begins with the same line.
"""

from __future__ import annotations

import os

import typer.main
from typer._completion_classes import completion_init

from curtsy import __version__
from curtsy.cli.commands import Commands, LazyCommand

_root = Commands("A polite, durable web crawler.", name="curtsy", invoke_without_command=True)


@_root.callback()
def root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


app = typer.main.get_group(_root)
for command in (
    LazyCommand("crawl", "curtsy.cli.crawl:crawl", "Crawl websites politely."),
    LazyCommand("init", "curtsy.cli.init:init", "Make a project folder with settings and seeds."),
    LazyCommand("demo", "curtsy.cli.demo:demo", "Crawl a part of the built-in test web and audit the result."),
    LazyCommand("crawl-worker", "curtsy.cli.worker:crawl_worker", "One more process of a crawl.", hidden=True),
    LazyCommand("submit", "curtsy.cli.submit:submit", "Submit a crawl and return at once."),
    LazyCommand("status", "curtsy.cli.state:status", "Show the progress of a crawl, or list all crawls."),
    LazyCommand("pause", "curtsy.cli.state:pause", "Pause a crawl; requests in flight finish."),
    LazyCommand("resume", "curtsy.cli.state:resume", "Resume a paused crawl."),
    LazyCommand("cancel", "curtsy.cli.state:cancel", "Cancel a crawl; fetched pages stay."),
    LazyCommand("export", "curtsy.cli.export:export", "Export the pages, records or URLs of a crawl."),
    LazyCommand(
        "bundle", "curtsy.cli.bundle:bundle", "Write a crawl to hand over: report, tables, audit."
    ),
    LazyCommand("show", "curtsy.cli.show_page:show", "Show a stored page, redirect or error."),
    LazyCommand("audit", "curtsy.cli.results:audit", "Check the request log for impolite requests."),
    LazyCommand("explain", "curtsy.cli.results:explain", "Explain the state of a URL or a host."),
    LazyCommand("failures", "curtsy.cli.failures:app", "List dead letters, or replay them."),
    LazyCommand("hosts", "curtsy.cli.hosts:app", "Show hosts, block them, or set their delays."),
    LazyCommand("delete", "curtsy.cli.delete:delete", "Delete a crawl, or the pages of a URL or host."),
    LazyCommand("schedules", "curtsy.cli.schedules:app", "Manage recurring crawls."),
    LazyCommand("changes", "curtsy.cli.schedules:changes", "Show what changed since an earlier crawl."),
    LazyCommand("records", "curtsy.cli.records:records", "Print the records of a crawl as JSON lines."),
    LazyCommand("review", "curtsy.cli.review:app", "Review records that need a decision."),
    LazyCommand("selectors", "curtsy.cli.selectors:app", "List, show, forget and export learned selectors."),
    LazyCommand("extract", "curtsy.cli.extract:extract", "Extract records again from the stored pages of a crawl."),
    LazyCommand("judge", "curtsy.cli.judge:judge", "Judge extraction against labeled pages."),
    LazyCommand("up", "curtsy.cli.up:up", "Run Valkey, workers, Beat and the API on this machine."),
    LazyCommand("worker", "curtsy.cli.workers:worker", "Run worker processes of a fleet."),
    LazyCommand("beat", "curtsy.cli.workers:beat", "Run the scheduler of a fleet."),
    LazyCommand("serve", "curtsy.cli.serve:serve", "Run the API and the dashboard."),
    LazyCommand("keys", "curtsy.cli.keys:app", "Create, list and revoke API keys."),
    LazyCommand("mcp", "curtsy.cli.mcp:mcp", "Run a Model Context Protocol server."),
    LazyCommand("external", "curtsy.cli.external:app", "List, replay and discard requests of Scrapy spiders."),
    LazyCommand("guests", "curtsy.cli.external:app", "Old name of `external`.", renamed_to="external"),
    LazyCommand(
        "tinyweb", "curtsy.cli.tinyweb:tinyweb", "Serve a small synthetic web for tests.",
        allow_extra_args=True, ignore_unknown_options=True, help_option_names=[],
    ),
    LazyCommand("completion", "curtsy.cli.completion:completion", "Print a script that completes commands in a shell."),
    LazyCommand("doctor", "curtsy.cli.doctor:doctor", "Check the installation and say how to repair it."),
):  # fmt: skip
    app.add_command(command)
if "_CURTSY_COMPLETE" in os.environ:
    completion_init()  # the shell requests completions
