"""`show`: a stored page for display."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from curtsy.cli import show as output
from curtsy.cli.backends import SharedOptions
from curtsy.cli.options import OfCrawl, Wide
from curtsy.client.backend import Backend, Document
from curtsy.core.errors import UsageError

#: parts of the document of a page
_PARTS = ("headers", "text", "markdown", "links", "records", "history")
#: facts that are shown in other lines, or only in --json
_QUIET = ("segment", "id", "crawl", "same_as", "has_content", "is_page", *_PARTS)
_VERSION = ("fetched_at", "status", "size", "unchanged", "sha256", "crawl")


def show(
    shared: SharedOptions,
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL of a page, or the id of a page or response.")],
    crawl: OfCrawl = None,
    body: Annotated[bool, typer.Option("--body", help="The stored body, byte for byte.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="The status and the headers of the response.")] = False,
    text: Annotated[bool, typer.Option("--text", help="What a reader sees.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The main content as Markdown.")] = False,
    links: Annotated[bool, typer.Option("--links", help="The links of the page, one per line.")] = False,
    with_records: Annotated[bool, typer.Option("--records", help="The records made from it, as JSON lines.")] = False,
    history: Annotated[bool, typer.Option("--history", help="The versions of the page in all crawls.")] = False,
    wide: Wide = False,
) -> None:
    """Show a stored page, redirect or error."""
    given = {
        "body": body, "headers": headers, "text": text, "markdown": markdown, "links": links,
        "records": with_records, "history": history,
    }  # fmt: skip
    wanted = [name for name, is_given in given.items() if is_given]
    if len(wanted) > 1:
        raise UsageError(f"Choose one of: {', '.join('--' + name for name in wanted)}.")
    used = shared.backend()
    if shared.as_json:
        output.document(used.page_details(url, crawl, _PARTS))
    elif not wanted:
        _print_facts(used.page_details(url, crawl, ("links", "records", "history")))
    elif body:
        _print_body(used, used.page_details(url, crawl, ()))
    else:
        _print_part(wanted[0], used.page_details(url, crawl, wanted), wide)


def _print_facts(page: Document) -> None:
    for name, value in page.items():
        if value not in (None, False) and name not in _QUIET:
            output.say(f"{name:<15} {output.one_line(str(value), 500)}")
    output.say(f"{'crawl':<15} {page['crawl']}")
    output.say(f"{'page':<15} {page['id']}")
    for name, part in (("links", "links"), ("records", "records"), ("versions", "history")):
        output.say(f"{name:<15} {len(page[part]):,}")
    if not page["is_page"]:
        output.say("It is not a page: a redirect or an error, which a WARC export includes.")
    if page["has_content"]:
        output.note("Parts: --text, --markdown, --headers, --links, --records, --history, --body")
    else:
        output.say("Its body was not stored.")


def _print_body(used: Backend, page: Document) -> None:
    _check_stored(page)
    sys.stdout.buffer.write(used.content(page) or b"")
    sys.stdout.buffer.flush()


def _print_part(name: str, page: Document, wide: bool) -> None:
    if name == "records":
        for record in page["records"]:
            output.say(json.dumps(record, ensure_ascii=False))
        return
    if name == "history":
        output.table(_VERSION, [_version(one) for one in page["history"]], wide)
        return
    _check_stored(page)
    if name == "headers":
        output.say(f"status: {page['status']}")
        for header, value in page["headers"]:
            output.say(output.inert(f"{header}: {value}"))
    elif name == "links":
        for link in page["links"]:
            output.say(link)
    else:
        output.say(output.inert(page[name] or ""))


def _version(one: Document) -> list[object]:
    return [(one["sha256"] or "")[:12] if name == "sha256" else one[name] for name in _VERSION]


def _check_stored(page: Document) -> None:
    if not page["has_content"]:
        raise UsageError(f"The body of {page['url']} was not stored.")
