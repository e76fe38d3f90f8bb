"""Export a crawl's pages as JSON Lines, a table, a WARC file or a folder of Markdown.

Every format is a stream of byte blocks, produced while it is written: memory does not grow with the crawl. `targets`
writes the blocks so that no output is ever partial.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from curtsy.content.document import is_html
from curtsy.core.document_facts import DocumentFacts
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, Page
from curtsy.core.settings import Settings
from curtsy.export.tables import Format, Tally, need_pyarrow, table
from curtsy.export.targets import Folder, ObjectPlace, Target, check_file, check_parent, place, umask, write_whole
from curtsy.services.stored_files import markdown_of
from curtsy.store import pages, urls, warc
from curtsy.store.engine import Store
from curtsy.store.segment_places import open_segments
from curtsy.store.segments import SegmentStore, read_page

#: marks a folder as an export, so that the next export may replace it
MARK = ".curtsy-export"
_MARK_TEXT = b"Made by curtsy export. The next export to this folder replaces it.\n"

ENDINGS = {".jsonl": Format.JSONL, ".csv": Format.CSV, ".parquet": Format.PARQUET, ".warc.gz": Format.WARC}

#: name -> type in Parquet, in the order of the columns
COLUMNS = {
    "url": "string",
    "status": "int32",
    "fetched_at": "string",
    "content_type": "string",
    "title": "string",
    "sha256": "string",
    "depth": "int32",
    "segment": "string",
    "id": "string",
    "host": "string",
    "charset": "string",
    "size": "int64",
    "language": "string",
    "canonical": "string",
    "etag": "string",
    "last_modified": "string",
    "unchanged": "bool",
    "same_as": "string",
    "truncated": "bool",
    "document": "string",
    "problem": "string",
    "document_pages": "int32",
    "author": "string",
    "created": "string",
    "modified": "string",
    "lastmod": "string",
    "priority": "double",
}


def format_of(out: Target, given: str | None) -> Format:
    """Return the format that was given, or that the file name ending implies; they must not contradict each other."""
    implied = next((found for ending, found in ENDINGS.items() if out is not None and out.name.endswith(ending)), None)
    if given is not None:
        try:
            chosen = Format(given.removesuffix(".gz"))
        except ValueError:
            raise UsageError(f"Unknown export format: {given!r}. Use one of: {', '.join(Format)}.") from None
        if implied not in (None, chosen):
            raise UsageError(
                f"--out {out} implies {implied}, but --format is {chosen}. Remove --format, or rename the file."
            )
        return chosen
    if out is None:
        return Format.JSONL
    if implied is not None:
        return implied
    if "." in out.name.lstrip(".") and not out.is_dir():
        raise UsageError(f"The ending of {out} implies no format. Use {', '.join(ENDINGS)}, a folder, or --format.")
    return Format.MARKDOWN


def check_target(out: Target, chosen: Format) -> None:
    """Raise UsageError before the work begins if the target cannot be written."""
    if out is None:
        if chosen in (Format.PARQUET, Format.MARKDOWN):
            raise UsageError(f"{chosen} cannot be written to standard output. Use --out PATH.")
        return
    if chosen is Format.PARQUET:
        need_pyarrow()
    if isinstance(out, ObjectPlace):
        _check_objects(out, chosen)
        return
    try:
        if chosen is not Format.MARKDOWN:
            check_file(out, chosen, seeks=chosen is Format.PARQUET)
            return
        if out.exists() and not (out / MARK).exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out} exists and is not an export. Use another folder, or empty it.")
        check_parent(out)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        why = getattr(error, "strerror", None) or error  # without the name of the file that was only a test
        raise UsageError(f"{out} cannot be written: {why}. Use another --out.") from error


def _check_objects(out: ObjectPlace, chosen: Format) -> None:
    if chosen is not Format.MARKDOWN:
        if out.is_dir():
            raise UsageError(f"{out} names no object, but {chosen} needs one. Add its name.")
        return
    folder = out.folder()
    if folder.read(MARK) is None and folder.is_used():
        raise UsageError(f"{out} contains objects and is not an export. Use another prefix, or empty it.")


def segments_of(settings: Settings) -> SegmentStore:
    """Return the segments of these settings, for reading."""
    return open_segments(settings.segments_url or settings.segments_dir, int(settings.segment_mb * 1e6))


def export(
    store: Store,
    segments: SegmentStore,
    crawl: Crawl,
    out: Target,
    chosen: Format,
    csv_safe: bool = False,
    full_page: bool = False,
) -> int:
    """Write all pages of a crawl; return their number. `full_page`: Markdown of more than the main content."""
    found = pages_of(store, crawl.n)
    if chosen is Format.MARKDOWN:
        assert out is not None
        return _markdown(MarkdownWriter(store, segments, full_page), found, out)
    written = Tally()
    name = out.name if out else "export.warc.gz"
    write_whole(out, blocks_of(found, segments, chosen, written, name, csv_safe))
    return written.n


def blocks_of(
    found: Iterable[Page], segments: SegmentStore, chosen: Format, written: Tally, name: str, csv_safe: bool = False
) -> Iterator[bytes]:
    """Return the file of these pages; not for Markdown, which has a file for each page."""
    if chosen is Format.WARC:
        return _warc(found, segments, written, name)
    return table(map(row_of, found), COLUMNS, chosen, written, csv_safe)


def pages_of(store: Store, crawl: int, after: int = 0, upto: int | None = None) -> Iterator[Page]:
    """Yield pages in commit order, in short transactions that never block a crawl."""
    while True:
        with store.read() as tx:
            found, after = pages.chunk(tx, crawl, after, upto=upto)
            listed = urls.listings(tx, [(page.crawl, page.fp) for page in found])
        if not found:
            return
        for page in found:
            says = listed.get((page.crawl, page.fp))
            yield page if says is None else replace(page, lastmod=says.lastmod, priority=says.priority)


def row_of(page: Page) -> dict[str, Any]:
    """Return one page as a row of every table format."""
    body = page.body
    row = {name: getattr(page, name, None) for name in COLUMNS}
    row["fetched_at"] = datetime.fromtimestamp(page.fetched_ms / 1000, UTC).isoformat(timespec="milliseconds")
    row |= _document(page.document)
    row["segment"] = None if body is None else f"{body.segment}:{body.offset}:{body.length}"
    return row


def _document(facts: DocumentFacts | None) -> dict[str, Any]:
    if facts is None:
        return {"document": None}
    return {
        "document": facts.kind, "problem": facts.problem or None, "document_pages": facts.pages or None,
        "author": facts.author or None, "created": facts.created or None, "modified": facts.modified or None,
    }  # fmt: skip


def _warc(found: Iterable[Page], segments: SegmentStore, written: Tally, name: str) -> Iterator[bytes]:
    """Yield the stored records, each checked: a damaged one is an error. A page without a stored body is left out."""
    yield warc.warcinfo(name)
    for page in written.each(page for page in found if page.body is not None):
        record = segments.read_bytes(page.body)
        warc.read(record, page.body)
        yield record


def _markdown(writer: MarkdownWriter, found: Iterator[Page], out: Path | ObjectPlace) -> int:
    if isinstance(out, ObjectPlace):
        folder = out.folder()
        folder.clear()
        folder.write(MARK, [_MARK_TEXT])
        return sum(writer.write_to(folder, page) for page in found)
    return _markdown_folder(writer, found, place(out))


def _markdown_folder(writer: MarkdownWriter, found: Iterator[Page], out: Path) -> int:
    made = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        os.chmod(made, 0o777 & ~umask())
        (made / MARK).write_bytes(_MARK_TEXT)

        def write(name: str, data: bytes) -> None:
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_bytes(data)

        written = sum(writer.write(page, write) for page in found)
        if out.exists():
            shutil.rmtree(out)
        made.rename(out)
    except OSError as error:
        shutil.rmtree(made, ignore_errors=True)
        if error.errno is None or not str(error.filename or made).startswith(str(made)):
            raise
        raise OSError(error.errno, error.strerror, str(out)) from error
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return written


@dataclass(frozen=True, slots=True)
class MarkdownWriter:
    """Writes pages and documents as host/path.md."""

    store: Store
    segments: SegmentStore
    #: with menus, headers, footers and related links
    full_page: bool

    def write_to(self, folder: Folder, page: Page) -> bool:
        """Return False if the page has no text."""
        return self.write(page, lambda name, data: folder.write(name, [data]))

    def write(self, page: Page, write: Callable[[str, bytes], None]) -> bool:
        with self.store.read() as tx:
            record = read_page(tx, self.segments, page)
        if record is None or not record.body or not (page.document or is_html(page.content_type, record.body)):
            return False
        facts = {name: value for name, value in row_of(page).items() if value is not None}
        # JSON is YAML: no value of a page can end the front matter.
        front = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in facts.items())
        text = markdown_of(record.body, page.content_type, page.url, full_page=self.full_page)
        write(file_name(page), f"---\n{front}---\n\n{text.strip()}\n".encode("utf-8", "replace"))
        return True


def file_name(page: Page) -> str:
    """`host/path-of-the-page-1a2b3c4d.md`: readable, unique by the URL's fingerprint, valid on any file system."""
    path = page.url.partition("://")[2].partition("/")[2]
    slug = _UNSAFE.sub("-", path).strip("-.")[:80] or "index"
    return f"{_UNSAFE.sub('-', page.host).strip('-.') or 'host'}/{slug}-{page.fp.hex()[:8]}.md"


_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
