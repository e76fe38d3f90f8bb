"""`demo`: a crawl of the tiny web, audited: what `make crawl` runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from curtsy.cli import DEAD_LETTERS, demo_report, show
from curtsy.cli.crawl import print_summary, run_and_export
from curtsy.cli.crawl_options import request_of
from curtsy.cli.options import DataDir, ModelKind, RubricName, SchemaName, settings_from
from curtsy.cli.results import print_verdict
from curtsy.control.crawl_request import crawl_of
from curtsy.control.stored_audit import judged
from curtsy.core.model import new_id
from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb, demo_seeds


def demo(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="PATH",
            help="Where to write the pages.",
            show_default="out/pages.jsonl",
            rich_help_panel="Output",
        ),
    ] = Path("out/pages.jsonl"),
    schema: SchemaName = None,
    rubric: RubricName = None,
    llm: ModelKind = None,
    render: Annotated[
        str,
        typer.Option(
            "--render", metavar="WHEN", help="Use a browser: never, auto or always.", rich_help_panel="Rendering"
        ),
    ] = "never",
    data_dir: DataDir = None,
) -> None:
    """Crawl a part of the built-in test web and audit the result.

    With --schema, it also extracts records, scores them (with the rubric `esg`
    unless --rubric names another), and compares them with the known facts.
    """
    scored = rubric or (None if schema is None else "esg")
    request = request_of({"schema": schema, "rubric": scored, "llm": llm, "render": render})
    with TinyWeb.start() as web:
        settings = settings_from(Path("tinyweb.toml"), data_dir, resolve=(web.resolve_rule,), llm=llm)
        show.note(f"Crawling a part of the tiny web on 127.0.0.1:{web.port}; some of its hosts are broken on purpose.")
        crawl = crawl_of(request, settings, new_id())
        ended = run_and_export(settings, crawl, demo_seeds(), out, 1, False)
    print_summary(ended, settings, out)
    show.say()
    trusted = True
    with Store.open(settings.effective_store_url) as store:
        verdict = judged(store, settings.agent, crawl=ended.crawl.n)
        print_verdict(verdict)
        if schema is not None and not ended.interrupted:
            trusted = demo_report.judged(store, ended.crawl)
    if ended.interrupted or not verdict.polite or not trusted:
        raise typer.Exit(ended.exit_code if ended.interrupted else DEAD_LETTERS)
