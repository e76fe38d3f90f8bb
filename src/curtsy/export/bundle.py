"""A bundle to hand over: everything about one crawl that a colleague needs, as a folder or a zip file.

report.html         the records with their quotes, for a browser; needs no server
records.csv, ...    the tables of `export --records`, and tables.xlsx with all of them
pages.csv           the pages
urls.csv            every URL: what was done, what is missing and why
settings.json       how the crawl was made, without secrets
audit.json          whether it was polite
README.txt, SHA256SUMS
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from curtsy.control.stored_audit import judged
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl
from curtsy.core.settings import Settings
from curtsy.export import page_rows, record_tables, report, url_tables, xlsx
from curtsy.export.page_rows import PageRows
from curtsy.export.tables import Format, Table, Tally, table
from curtsy.export.targets import Target, check_file, check_folder, replace_folder, write_whole
from curtsy.export.zipped import File, zipped
from curtsy.records import serialize
from curtsy.store import crawls, pages, records
from curtsy.store.engine import Store

#: options of a crawl that may hold secrets
_WITHHELD = ("webhook", "webhook_secret")
_README = """This is a crawl by Curtsy, to hand over.

report.html     open it in a browser: the records, and for each value the quote in the text of its page
records*.csv    the values as tables; tables.xlsx has the same for a spreadsheet
evidence.csv    for each value: its quote, the URL, the page of a document, the verdict
pages.csv       the pages that were fetched
urls.csv        every URL: what was done with it, or why not
settings.json   how the crawl was made; secrets are left out
audit.json      the check of the request log: whether the crawl was polite
SHA256SUMS      check the files with: sha256sum --check SHA256SUMS

A crawl without a schema has no records: then the report lists its pages.
"""


def check_target(out: Target) -> bool:
    """Raise UsageError if the bundle cannot be written there; return whether it is a zip file."""
    if out is None:
        raise UsageError("A bundle is a folder or a zip file. Use --out NAME or --out NAME.zip.")
    if not out.name.endswith(".zip"):
        check_folder(out)
        return False
    if isinstance(out, Path):
        check_file(out, "a zip file", seeks=True)
    return True


def write(rows: PageRows, out: Target, audit: dict[str, Any]) -> list[str]:
    """Write the bundle; return the names of its files."""
    check(rows)
    return write_files(files(rows, audit), out)


def audit_of(store: Store, settings: Settings, crawl: Crawl) -> dict[str, Any]:
    """The check of the request log, as audit.json has it."""
    verdict = judged(store, settings.agent, crawl=crawl.n)
    return {"polite": verdict.polite} | verdict.document()


def check(rows: PageRows) -> None:
    """Raise UsageError if there is nothing to hand over."""
    with rows.store.read() as tx:
        any_page = bool(pages.how_many(tx, rows.crawl.n))
    if not any_page:
        id = rows.crawl.id
        raise UsageError(f"Crawl {id} has no pages. See why with: curtsy export {id} --urls")


def files(rows: PageRows, audit: dict[str, Any]) -> Iterator[File]:
    """The files of the bundle; each must be read before the next."""
    return _hashed(_files(rows, audit))


def write_files(found: Iterable[File], out: Target) -> list[str]:
    """Write the files to a folder or a zip file; return their names."""
    assert out is not None
    names: list[str] = []

    def noted() -> Iterator[File]:
        for name, blocks in found:
            names.append(name)
            yield name, blocks

    if out.name.endswith(".zip"):
        write_whole(out, zipped(noted()))
    else:
        replace_folder(out, noted())
    return names


def _files(rows: PageRows, audit: dict[str, Any]) -> Iterator[File]:
    store, crawl = rows.store, rows.crawl
    facts = _facts(store, crawl, audit)
    if _has_records(store, crawl):
        tables = record_tables.tables(store, crawl)
        layout = record_tables.layout_of(store, crawl)
        yield "report.html", report.of_records(store, crawl, layout, serialize.of_crawl(store, crawl.id), facts)
    else:
        tables = []
        yield "report.html", report.of_pages(crawl, page_rows.pages_of(store, crawl.n), facts)
    all_pages = Table("pages", rows.columns, lambda: map(rows.row, page_rows.pages_of(store, crawl.n)))
    tables = [*tables, all_pages, *url_tables.tables(store, crawl)]
    for one in tables:
        yield f"{one.name}.csv", table(one.rows(), one.columns, Format.CSV, Tally(), csv_safe=True)
    yield "tables.xlsx", xlsx.workbook(tables, Tally())
    yield "settings.json", _json(_settings(store, crawl))
    yield "audit.json", _json(audit)
    yield "README.txt", iter((_README.encode(),))


def _has_records(store: Store, crawl: Crawl) -> bool:
    with store.read() as tx:
        return crawl.schema is not None and bool(records.counts(tx, crawl.n, crawl.schema_hash).get("published"))


def _facts(store: Store, crawl: Crawl, audit: dict[str, Any]) -> list[str]:
    with store.read() as tx:
        counts = crawls.counts(tx, crawl.n)
    failed, skipped = sum(counts.failed.values()), sum(counts.skipped.values())
    polite = "The audit found no impolite request." if audit.get("polite") else "The audit found impolite requests."
    return [
        f"The crawl is {crawl.state}: {counts.pages:,} pages, {skipped:,} URLs skipped, {failed:,} failed.",
        f"{polite} urls.csv lists every URL with the reason.",
    ]


def _settings(store: Store, crawl: Crawl) -> dict[str, Any]:
    """The stored settings have no secrets: what may hold one is named, not kept."""
    with store.read() as tx:
        kept = crawls.settings_of(tx, crawl.n)
    names = ("scope", "include", "exclude", "max_pages", "max_depth", "delay_s", "per_host", "render", "sitemaps",
             "cookies", "name", "tags", "schema", "schema_hash", "per", "rubric", "llm", "lane")  # fmt: skip
    options = {name: getattr(crawl, name) for name in names}
    return {"crawl": crawl.id, "state": crawl.state.value, "options": options} | {
        "settings": {name: value for name, value in kept.get("settings", {}).items() if name not in _WITHHELD},
        "withheld": kept.get("withheld", []),
    }


def _json(document: dict[str, Any]) -> Iterator[bytes]:
    yield json.dumps(document, ensure_ascii=False, indent=2, default=str).encode("utf-8", "replace") + b"\n"


def _hashed(files: Iterable[File]) -> Iterator[File]:
    """The files, and at the end their digests as `sha256sum` writes them."""
    sums: list[str] = []

    def each(name: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
        digest = hashlib.sha256()
        for block in blocks:
            digest.update(block)
            yield block
        sums.append(f"{digest.hexdigest()}  {name}\n")

    for name, blocks in files:
        yield name, each(name, blocks)
    yield "SHA256SUMS", iter(("".join(sums).encode(),))
