"""A crawl's pages as lines, a table, a WARC file or a folder of Markdown; streamed, and never half-written.

A file is written beside its place under another name and moved there when it is complete; so is the folder. A pipe or a
device is written into, and a symbolic link is followed: what stands under that name stays what it is.
"""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, Any

from curtsy.document import Document, is_html
from curtsy.errors import MissingPart, UsageError
from curtsy.model import Crawl, Page
from curtsy.settings import Settings
from curtsy.store import pages, warc
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore, open_segments, read_page

#: rows per group of a Parquet file: some MB
GROUP = 10_000
#: a cell that begins so may be a formula to a spreadsheet
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: marks a folder as ours, so that the next export may replace it
MARK = ".curtsy-export"


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    WARC = "warc"
    MARKDOWN = "markdown"


ENDINGS = {".jsonl": Format.JSONL, ".csv": Format.CSV, ".parquet": Format.PARQUET, ".warc.gz": Format.WARC}

#: name -> type in Parquet; the order of the columns everywhere
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
}


def format_of(out: Path | None, given: str | None) -> Format:
    """The format that was named, or that the path's ending tells; the two must not contradict each other."""
    told = next((found for ending, found in ENDINGS.items() if out is not None and out.name.endswith(ending)), None)
    if given is not None:
        try:
            chosen = Format(given.removesuffix(".gz"))
        except ValueError:
            raise UsageError(f"{given!r} is no export format. Use one of: {', '.join(Format)}.") from None
        if told not in (None, chosen):
            raise UsageError(
                f"--out {out} says {told}, --format says {chosen}. Leave --format out, or rename the file."
            )
        return chosen
    if out is None:
        return Format.JSONL
    if told is not None:
        return told
    if "." in out.name.lstrip(".") and not out.is_dir():
        raise UsageError(f"The ending of {out} tells no format. Use {', '.join(ENDINGS)}, a folder, or --format.")
    return Format.MARKDOWN


def check_target(out: Path | None, chosen: Format) -> None:
    """Complain before the work begins, not after it."""
    if out is None:
        if chosen in (Format.PARQUET, Format.MARKDOWN):
            raise UsageError(f"{chosen} cannot go to standard output: give --out PATH.")
        return
    if chosen is Format.PARQUET:
        _pyarrow()
    try:
        if chosen is Format.MARKDOWN:
            if out.exists() and not (out / MARK).exists() and (not out.is_dir() or any(out.iterdir())):
                raise UsageError(f"{out} is there already and is no export of ours. Name another folder, or empty it.")
        elif out.is_dir():
            raise UsageError(f"{out} is a folder; {chosen} is written to a file.")
        elif _is_special(out):
            if chosen is Format.PARQUET:
                raise UsageError(f"{out} is a pipe or a device; {chosen} needs a file.")
            if not os.access(out, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        with tempfile.TemporaryFile(dir=_nearest(out.resolve().parent)):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: links that go round in a circle
        raise UsageError(f"{out} cannot be written: {error}. Name another place with --out.") from error


def _is_special(out: Path) -> bool:
    """A pipe, a socket or a device, also behind a link: nothing that another file may take the place of."""
    try:
        mode = out.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest above it that is there: the others are made when the export is written."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def segments_of(settings: Settings) -> SegmentStore:
    """The segments of these settings, to read."""
    return open_segments(settings.segments_url or settings.segments_dir, int(settings.segment_mb * 1e6))


def export(
    store: Store, segments: SegmentStore, crawl: Crawl, out: Path | None, chosen: Format, csv_safe: bool = False
) -> int:
    """Write all pages of a crawl; how many they were."""
    found = pages_of(store, crawl.n)
    if chosen is Format.MARKDOWN:
        assert out is not None
        return _markdown_folder(store, segments, found, out)
    with _whole(out) as file:
        if chosen is Format.WARC:
            return _warc(found, segments, file, out.name if out else "export.warc.gz")
        if chosen is Format.CSV:
            return _csv(found, file, csv_safe)
        return (_jsonl if chosen is Format.JSONL else _parquet)(found, file)


def pages_of(store: Store, crawl: int) -> Iterator[Page]:
    """In the order they were committed, in short transactions: an export never holds up a crawl."""
    after = 0
    while True:
        with store.read() as tx:
            found, after = pages.chunk(tx, crawl, after)
        if not found:
            return
        yield from found


def row_of(page: Page) -> dict[str, Any]:
    """One page as every table format shows it."""
    body = page.body
    row = {name: getattr(page, name, None) for name in COLUMNS}
    row["fetched_at"] = datetime.fromtimestamp(page.fetched_ms / 1000, UTC).isoformat(timespec="milliseconds")
    row["segment"] = None if body is None else f"{body.segment}:{body.offset}:{body.length}"
    return row


@contextmanager
def _whole(out: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears only when it is complete."""
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if _is_special(out):
        with open(os.open(out, os.O_WRONLY | os.O_CLOEXEC), "wb") as file:
            yield file
        return
    target = _place(out)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _place(out: Path) -> Path:
    """Where it goes once links are followed, in a folder that is there."""
    target = out.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _jsonl(found: Iterator[Page], file: IO[bytes]) -> int:
    written = 0
    for page in found:
        file.write(
            json.dumps(row_of(page), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        )
        written += 1
    return written


class _Utf8:
    """What csv.writer needs of a file, over bytes: unlike TextIOWrapper it does not close what is not ours."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode("utf-8", "replace"))


def _csv(found: Iterator[Page], file: IO[bytes], safe: bool) -> int:
    writer = csv.DictWriter(_Utf8(file), list(COLUMNS))
    writer.writeheader()
    written = 0
    for page in found:
        row = row_of(page)
        writer.writerow({name: _inert(value) for name, value in row.items()} if safe else row)
        written += 1
    return written


def _inert(value: Any) -> Any:
    """What a spreadsheet would take for a formula begins with a quotation mark."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _parquet(found: Iterator[Page], file: IO[bytes]) -> int:
    pyarrow, parquet = _pyarrow()
    types = {"string": pyarrow.string(), "int32": pyarrow.int32(), "int64": pyarrow.int64(), "bool": pyarrow.bool_()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    written = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in _groups(map(row_of, found), GROUP):
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
            written += len(rows)
    return written


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise MissingPart("Parquet needs pyarrow: pip install 'curtsy[parquet]', or export jsonl or csv.") from None
    return pyarrow, parquet


def _groups(rows: Iterator[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    while group := list(islice(rows, size)):
        yield group


def _warc(found: Iterator[Page], segments: SegmentStore, file: IO[bytes], name: str) -> int:
    """The stored records as they are, each checked: a damaged one ends it. A page whose body was not kept has none."""
    file.write(warc.warcinfo(name))
    written = 0
    for page in found:
        if page.body is not None:
            record = segments.read_bytes(page.body)
            warc.read(record, page.body)
            file.write(record)
            written += 1
    return written


def _markdown_folder(store: Store, segments: SegmentStore, found: Iterator[Page], out: Path) -> int:
    out = _place(out)
    made = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        os.chmod(made, 0o777 & ~_umask())
        (made / MARK).write_text("Made by curtsy export: the next export to this folder replaces it.\n")
        written = sum(_write_markdown(store, segments, page, made) for page in found)
        if out.exists():
            shutil.rmtree(out)
        made.rename(out)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return written


def _write_markdown(store: Store, segments: SegmentStore, page: Page, folder: Path) -> bool:
    """One page as host/path.md; False if it has no body that can be read as text."""
    with store.read() as tx:
        record = read_page(tx, segments, page)
    if record is None or not record.body or not is_html(page.content_type, record.body):
        return False
    path = folder / file_name(page)
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {name: value for name, value in row_of(page).items() if value is not None}
    # JSON is YAML: no value of a page can break out of the front matter.
    front = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in facts.items())
    text = Document.parse(record.body, page.content_type, page.url).markdown()
    path.write_text(f"---\n{front}---\n\n{text.strip()}\n", "utf-8", "replace")
    return True


def file_name(page: Page) -> str:
    """`host/path-of-the-page-1a2b3c4d.md`: readable, unique by the URL's fingerprint, safe on any file system."""
    path = page.url.partition("://")[2].partition("/")[2]
    slug = _UNSAFE.sub("-", path).strip("-.")[:80] or "index"
    return f"{_UNSAFE.sub('-', page.host).strip('-.') or 'host'}/{slug}-{page.fp.hex()[:8]}.md"


_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
