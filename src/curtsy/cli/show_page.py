"""`show`: a stored page for display."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curtsy.cli import show as output
from curtsy.cli.options import AsJson, Config, DataDir, OfCrawl, stored
from curtsy.content.document import Document, is_html
from curtsy.content.links import hrefs
from curtsy.control import explain
from curtsy.core.errors import UsageError
from curtsy.core.model import Page
from curtsy.core.record import Record
from curtsy.core.settings import Settings
from curtsy.core.times import timestamp
from curtsy.export.page_rows import content_of, row_of, segments_of
from curtsy.records import serialize
from curtsy.rules.urls import fingerprint, normalise, veiled
from curtsy.services.stored_files import file_of
from curtsy.store import crawls, pages, records
from curtsy.store.segments import read_page
from curtsy.store.warc import WarcRecord

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from curtsy.store.engine import Store

#: versions of a page that the history lists
_MOST_VERSIONS = 50
#: facts that are shown in other lines, or only in --json
_QUIET = ("segment", "id", "crawl", "same_as")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A page with what the store knows of it."""

    page: Page
    crawl: str
    #: None: its body was not stored
    response: WarcRecord | None
    records: tuple[Record, ...]
    #: the same URL in every crawl, newest first: (id of the crawl, page)
    history: tuple[tuple[str, Page], ...]


def show(
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL of a page, or the id of one.")],
    crawl: OfCrawl = None,
    body: Annotated[bool, typer.Option("--body", help="The stored body, byte for byte.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="The status and the headers of the response.")] = False,
    text: Annotated[bool, typer.Option("--text", help="What a reader sees.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The main content as Markdown.")] = False,
    links: Annotated[bool, typer.Option("--links", help="The links of the page, one per line.")] = False,
    with_records: Annotated[bool, typer.Option("--records", help="The records made from it, as JSON lines.")] = False,
    history: Annotated[bool, typer.Option("--history", help="The versions of the page in all crawls.")] = False,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show a stored page: its facts, or one part of it."""
    wanted = [
        name
        for name, given in (
            ("body", body), ("headers", headers), ("text", text), ("markdown", markdown), ("links", links),
            ("records", with_records), ("history", history),
        )
        if given
    ]  # fmt: skip
    if len(wanted) > 1:
        raise UsageError(f"Choose one of: {', '.join('--' + name for name in wanted)}.")
    with stored(config, data_dir) as (settings, store):
        found = find(store, settings, url, crawl)
    if as_json:
        output.document(document(found))
    elif wanted:
        _PARTS[wanted[0]](found)
    else:
        _print_facts(found)


def find(store: Store, settings: Settings, url: str, crawl: str | None) -> Shown:
    """The page of a URL, in one crawl or in the newest that has it; UsageError if no crawl has it."""
    segments = segments_of(settings)
    try:
        with store.read() as tx:
            page = _page(tx, url, crawl)
            ids = crawls.ids(tx, [page.crawl])
            versions = pages.versions(tx, page.fp, _MOST_VERSIONS)
            names = crawls.ids(tx, {one.crawl for one in versions})
            return Shown(
                page=page,
                crawl=ids[page.crawl],
                response=read_page(tx, segments, page),
                records=tuple(records.of_page(tx, page.crawl, page.fp.hex())),
                history=tuple((names[one.crawl], one) for one in versions if one.crawl in names),
            )
    finally:
        segments.close()


def _page(tx: Connection, url: str, crawl: str | None) -> Page:
    if "://" not in url and "/" not in url and "." not in url:
        found = pages.by_id(tx, url)
        if found is None:
            raise UsageError(f"There is no page {url!r}. Page ids are in exports and in `curtsy explain URL`.")
        return found
    normal, _ = explain.target(url if "://" in url or "/" in url else f"{url}/", "host")
    if normal is None:
        raise UsageError(f"{veiled(url)!r} is not an http or https URL.")
    number = None if crawl is None else crawls.get(tx, crawl, members=False).n
    versions = pages.versions(tx, fingerprint(normal), 10_000 if number is not None else 1)
    for page in versions:
        if number in (None, page.crawl):
            return page
    raise UsageError(f"No page of {normal} is stored. See why with: curtsy explain {normal}")


def links_of(found: Shown) -> list[str]:
    """The links of an HTML page or a document, absolute, each once."""
    response, page = found.response, found.page
    if response is None:
        return []
    if is_html(page.content_type, response.body):
        read = Document.parse(response.body, page.content_type, page.url)
        absolute = (normalise(href, read.base_url) for href in hrefs(read))
    else:
        file = file_of(response.body, page.content_type, page.url)
        absolute = (normalise(href, page.url) for href in (file.links if file is not None else ()))
    return list(dict.fromkeys(url for url in absolute if url is not None))


def document(found: Shown) -> dict[str, Any]:
    """The fields of `show --json`; the body is not among them."""
    response = found.response
    return row_of(found.page, found.crawl) | {
        "headers": None if response is None else [list(pair) for pair in response.headers],
        "text": _content(found, "text"),
        "markdown": _content(found, "markdown"),
        "links": links_of(found),
        "records": [_record(one) for one in found.records],
        "history": [_version(crawl, page) for crawl, page in found.history],
    }


def _content(found: Shown, name: str) -> str | None:
    return None if found.response is None else content_of(name, found.response.body, found.page)


def _record(record: Record) -> dict[str, Any]:
    return serialize.line(record) | {"created": timestamp(record.created_ms)}


def _version(crawl: str, page: Page) -> dict[str, Any]:
    return {
        "crawl": crawl, "id": page.id, "fetched_at": timestamp(page.fetched_ms), "status": page.status,
        "sha256": page.sha256, "size": page.size, "unchanged": page.unchanged, "title": page.title,
    }  # fmt: skip




def _print_facts(found: Shown) -> None:
    facts = row_of(found.page, found.crawl)
    for name, value in facts.items():
        if value not in (None, False) and name not in _QUIET:
            output.say(f"{name:<15} {output.one_line(str(value), 500)}")
    output.say(f"{'crawl':<15} {found.crawl}")
    output.say(f"{'page':<15} {found.page.id}")
    output.say(f"{'links':<15} {len(links_of(found)):,}")
    output.say(f"{'records':<15} {len(found.records):,}")
    output.say(f"{'versions':<15} {len(found.history):,}")
    if found.response is None:
        output.say("Its body was not stored.")
    else:
        output.note("Parts: --text, --markdown, --headers, --links, --records, --history, --body")


def _print_body(found: Shown) -> None:
    sys.stdout.buffer.write(_response(found).body)
    sys.stdout.buffer.flush()


def _print_headers(found: Shown) -> None:
    response = _response(found)
    output.say(f"status: {response.status}")
    for name, value in response.headers:
        output.say(output.inert(f"{name}: {value}"))


def _print_content(name: str) -> Any:
    def print_it(found: Shown) -> None:
        _response(found)
        output.say(output.inert(_content(found, name) or ""))

    return print_it


def _print_links(found: Shown) -> None:
    _response(found)
    for link in links_of(found):
        output.say(link)


def _print_records(found: Shown) -> None:
    for record in found.records:
        output.say(json.dumps(_record(record), ensure_ascii=False))


def _print_history(found: Shown) -> None:
    columns = ("fetched_at", "status", "size", "unchanged", "sha256", "crawl")
    rows = [_version(crawl, page) for crawl, page in found.history]
    output.table(
        columns, [[(row["sha256"] or "")[:12] if name == "sha256" else row[name] for name in columns] for row in rows]
    )


def _response(found: Shown) -> WarcRecord:
    if found.response is None:
        raise UsageError(f"The body of {found.page.url} was not stored.")
    return found.response


_PARTS = {
    "body": _print_body,
    "headers": _print_headers,
    "text": _print_content("text"),
    "markdown": _print_content("markdown"),
    "links": _print_links,
    "records": _print_records,
    "history": _print_history,
}
