"""`delete`: crawls and pages go, with their bodies."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from curtsy.cli import frontier_access, remote, show
from curtsy.cli.options import AsJson, Config, DataDir, OfCrawl, stored
from curtsy.cli.remote import Api
from curtsy.client.http import word
from curtsy.control import retention
from curtsy.core.errors import UsageError
from curtsy.core.settings import Settings
from curtsy.store import crawls, deletion
from curtsy.store.engine import Store


def delete(
    crawl: OfCrawl = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="Pages of this URL.")] = None,
    host: Annotated[str | None, typer.Option("--host", metavar="HOST", help="Pages of this host.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    api: Api = None,
) -> None:
    """Delete a crawl, or the pages of a URL or host.

    Their bodies and records are deleted too. Pages are deleted in all crawls unless --crawl names one.
    """
    if (crawl is None and url is None and host is None) or (url is not None and host is not None):
        raise UsageError("Name what shall be deleted: --crawl ID, --url URL or --host HOST.")
    if "" in (crawl, url, host):
        raise UsageError("What shall be deleted is empty: give --crawl, --url or --host a value, or leave it out.")
    what = f"all pages of {url or host}{f' in crawl {crawl}' if crawl else ''}" if url or host else f"crawl {crawl}"
    if not yes and not typer.confirm(f"Delete {what} for good?"):
        raise UsageError("Nothing was deleted.")
    if api:
        client = remote.client(api)
        if url is None and host is None:
            found = client.get(f"/v1/crawls/{word(crawl or '')}")
            told = client.delete(f"/v1/crawls/{found['id']}")
        else:
            told = client.delete("/v1/pages", url=url, host=host, crawl=crawl)
        done = False
    else:
        with stored(config, data_dir, looks=False) as (settings, store):
            told = {"id": _note(store, settings, crawl, url, host)}
            done = _carry_out(store, settings, str(told["id"]))
    if as_json:
        show.document({"id": told["id"], "done": done})
    else:
        show.say(f"{what[0].upper()}{what[1:]}: {'deleted' if done else 'being deleted'}.")


def _note(store: Store, settings: Settings, crawl: str | None, url: str | None, host: str | None) -> str:
    n = None
    if crawl is not None:
        with store.read() as tx:
            found = crawls.get(tx, crawl)
        n, crawl = found.n, found.id
    if url is not None or host is not None or crawl is None:
        return retention.delete_pages(store, settings.politeness_unit, url=url, host=host, crawl=n)
    id = crawl
    if frontier_access.is_there(settings):
        return frontier_access.with_services(settings, lambda built: retention.delete_crawl(built, built.store, id))
    return asyncio.run(retention.delete_crawl(None, store, id))


def _carry_out(store: Store, settings: Settings, id: str) -> bool:
    """To the end; the row of a crawl that was just at work stays for a minute."""
    retention.delete_some(store, settings, float("inf"))
    with store.read() as tx:
        return all(one.id != id for one in deletion.pending(tx, 1000))
