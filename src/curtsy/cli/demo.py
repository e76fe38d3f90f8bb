"""`demo`: a crawl of the tiny web, audited: what `make crawl` runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from curtsy.cli import DEAD_LETTERS, demo_report, show
from curtsy.cli.crawl import new_crawl, print_summary, run_and_export
from curtsy.cli.crawl_options import DemoRender, fields, possible
from curtsy.cli.options import DataDir, ModelKind, RubricName, SchemaName, settings_from
from curtsy.cli.results import judged, print_verdict
from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb, demo_seeds


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="Where the pages go.")] = Path("out/pages.jsonl"),
    schema: SchemaName = None,
    rubric: RubricName = None,
    llm: ModelKind = None,
    render: DemoRender = None,
    data_dir: DataDir = None,
) -> None:
    """Crawl a part of the built-in test web and audit the result.

    With --schema it also extracts records and compares them with the known facts.
    """
    with TinyWeb.start() as web:
        settings = settings_from(Path("tinyweb.toml"), data_dir, resolve=(web.resolve_rule,), llm=llm)
        show.note(
            f"Crawling a selection of the tiny web on 127.0.0.1:{web.port}; some of its hosts are broken on purpose."
        )
        scored = rubric or (None if schema is None else "esg")
        wanted = new_crawl(**possible(fields(schema=schema, rubric=scored, llm=llm, render=render)))
        ended = run_and_export(settings, wanted, demo_seeds(), out, 1, False)
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
