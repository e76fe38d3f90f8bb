"""`bundle`: a crawl to hand over, as a folder or a zip file."""

from __future__ import annotations

from typing import Annotated

import typer

from curtsy.cli import show
from curtsy.cli.backends import SharedOptions
from curtsy.cli.export import say_held
from curtsy.cli.options import WhichCrawl
from curtsy.export import bundle as bundles
from curtsy.export.targets import target_of


def bundle(
    shared: SharedOptions,
    crawl: WhichCrawl = "last",
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="PATH", help="A folder or NAME.zip; also s3://...", show_default=False),
    ] = None,
) -> None:
    """Write a crawl to hand over: report, tables, audit.

    Open report.html in a browser; it needs no server.
    """
    target = target_of(out)
    bundles.check_target(target)
    done = shared.backend().bundle(crawl, target)
    if shared.printed({"id": done["id"], "out": out, "files": done["files"]}):
        return
    opened = f"unpack {out}, and open report.html" if str(out).endswith(".zip") else f"open {out}/report.html"
    show.note(f"{show.number(len(done['files']), 'file')} written to {out}. To look at it, {opened} in a browser.")
    say_held(done)
