"""`bundle`: a crawl to hand over, as a folder or a zip file."""

from __future__ import annotations

from typing import Annotated

import typer

from curtsy.cli import show
from curtsy.cli.options import AsJson, Config, DataDir, WhichCrawl, stored
from curtsy.cli.results import judged
from curtsy.export import bundle as bundles
from curtsy.export.page_rows import PageRows, segments_of
from curtsy.export.targets import target_of
from curtsy.store import crawls


def bundle(
    crawl: WhichCrawl = "last",
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="PATH", help="A folder or NAME.zip; also s3://...", show_default=False),
    ] = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write a crawl to hand over: report, tables, audit.

    Open report.html in a browser; it needs no server.
    """
    target = target_of(out)
    bundles.check_target(target)
    with stored(config, data_dir) as (settings, store):
        with store.read() as tx:
            found = crawls.get(tx, crawl)
        verdict = judged(store, settings.agent, crawl=found.n)
        audit = {"polite": verdict.polite} | verdict.document()
        names = bundles.write(PageRows(store, segments_of(settings), found), target, audit)
    if as_json:
        show.document({"id": found.id, "out": out, "files": names})
        return
    opened = f"unpack {out}, and open report.html" if str(out).endswith(".zip") else f"open {out}/report.html"
    show.note(f"{show.number(len(names), 'file')} written to {out}. To look at it, {opened} in a browser.")
