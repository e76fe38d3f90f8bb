"""Exports of a crawl as files, and one stored page with everything about it."""

from __future__ import annotations

from curtsy.core.errors import MissingPart
from curtsy.core.model import Crawl
from curtsy.export import bundle as bundles
from curtsy.export import page_details, streams
from curtsy.store import crawls
from curtsy.web.models.exports import ExportQuery, PageDetails, ShowQuery
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, Download, check_id, download, endpoint


@download("/v1/crawls/{id}/export", "application/octet-stream", "The file", streamed=True)
def export_crawl(call: Call, id: str, query: ExportQuery) -> Download:
    """Export the pages, records, evidence or URLs of a crawl as a file, which is sent while it is made.

    Several files (Markdown, `partition_by`, `tables` as `csv`, `jsonl` or `parquet`) are sent as a zip file. If the
    connection ends early, the file is not complete: request it again.
    """
    wanted = query.request()
    try:
        wanted.check(lambda name: f"`{'content' if name == 'with' else name}`")
    except MissingPart as error:
        raise Problem(422, "invalid-request", f"This server cannot write {wanted.format}: {error}") from error
    made = streams.export(call.store, call.settings, _crawl(call, id), wanted)
    return Download(body=made.blocks, name=made.name)


@download("/v1/crawls/{id}/bundle", "application/octet-stream", "A zip file", streamed=True, problems=(422,))
def bundle_crawl(call: Call, id: str) -> Download:
    """Everything about a crawl to hand over, as a zip file: report, tables, audit, settings without secrets."""
    crawl = _crawl(call, id)
    made = streams.bundled(call.store, call.settings, crawl, bundles.audit_of(call.store, call.settings, crawl))
    return Download(body=made.blocks, name=made.name)


@endpoint("GET", "/v1/show", scope="read")
def show_page(call: Call, query: ShowQuery) -> PageDetails:
    """A stored page by its URL or id, with the parts that you want. Its body is `/v1/pages/{id}/content`.

    For a URL without a page it is the last redirect or error, if one is stored.
    """
    if query.crawl is not None:
        call.crawl(query.crawl)
    found = page_details.find(call.store, call.settings, query.url, query.crawl)
    parts = () if query.parts == "none" else query.parts.split(",")
    return PageDetails.model_validate(page_details.document(found, parts))


def _crawl(call: Call, id: str) -> Crawl:
    """With the members of a schedule's run, as exports need it."""
    check_id(id)
    with call.store.read() as tx:
        return crawls.get(tx, id)
