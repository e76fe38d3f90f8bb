"""`delete`: removes crawls or pages, with their bodies."""

from __future__ import annotations

from typing import Annotated

import typer

from curtsy.cli import show
from curtsy.cli.backends import Api, backend
from curtsy.cli.options import AsJson, Config, DataDir, OfCrawl
from curtsy.core.errors import UsageError


def delete(
    crawl: OfCrawl = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="Pages of this URL.")] = None,
    host: Annotated[str | None, typer.Option("--host", metavar="HOST", help="Pages of this host.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    api: Api = None,
) -> None:
    """Delete a crawl, or the pages of a URL or host.

    Their bodies and records are deleted too. Pages are deleted in all crawls unless --crawl names one.
    """
    if (crawl is None and url is None and host is None) or (url is not None and host is not None):
        raise UsageError("Say what to delete: --crawl ID, --url URL or --host HOST.")
    if "" in (crawl, url, host):
        raise UsageError("--crawl, --url or --host is empty: give it a value, or remove it.")
    what = f"all pages of {url or host}{f' in crawl {crawl}' if crawl else ''}" if url or host else f"crawl {crawl}"
    if not yes and not typer.confirm(f"Delete {what} permanently?"):
        raise UsageError("Nothing was deleted.")
    done = backend(api, config, data_dir).delete(crawl, url, host)
    if as_json:
        show.document(done)
        return
    state = "deleted" if done["done"] else "being deleted"
    show.say(f"{what[0].upper()}{what[1:]}: {state}.")
