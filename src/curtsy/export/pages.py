"""Export a crawl's pages as JSON Lines, a table, a WARC file or a folder of Markdown.

Every format is a stream of byte blocks, produced while it is written: memory does not grow with the crawl. `targets`
writes the blocks so that no output is ever partial.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from curtsy.core.errors import UsageError
from curtsy.core.model import Page
from curtsy.export import markdown, partitions
from curtsy.export.page_rows import PageRows
from curtsy.export.tables import Format, Tally, need_pyarrow, table
from curtsy.export.targets import ObjectPlace, Target, check_file, check_folder, replace_folder, write_whole
from curtsy.export.zipped import File
from curtsy.store import warc
from curtsy.store.responses import Response
from curtsy.store.segments import SegmentStore

ENDINGS = {".jsonl": Format.JSONL, ".csv": Format.CSV, ".parquet": Format.PARQUET, ".warc.gz": Format.WARC}


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


def check_target(out: Target, chosen: Format, *, partitioned: bool = False) -> None:
    """Raise UsageError before the work begins if the target cannot be written."""
    if out is None:
        if partitioned or chosen in (Format.PARQUET, Format.MARKDOWN):
            what = "A partitioned export" if partitioned else chosen
            raise UsageError(f"{what} cannot be written to standard output. Use --out PATH.")
        return
    if chosen is Format.PARQUET:
        need_pyarrow()
    if isinstance(out, ObjectPlace):
        _check_objects(out, chosen, partitioned)
        return
    try:
        if partitioned or chosen is Format.MARKDOWN:
            check_folder(out)
        else:
            check_file(out, chosen, seeks=chosen is Format.PARQUET)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        why = getattr(error, "strerror", None) or error  # without the name of the file that was only a test
        raise UsageError(f"{out} cannot be written: {why}. Use another --out.") from error


def _check_objects(out: ObjectPlace, chosen: Format, partitioned: bool) -> None:
    if partitioned or chosen is Format.MARKDOWN:
        check_folder(out)
    elif out.is_dir():
        raise UsageError(f"{out} names no object, but {chosen} needs one. Add its name.")


def export(
    rows: PageRows, out: Target, chosen: Format, csv_safe: bool = False, full_page: bool = False, by: str | None = None
) -> int:
    """Write all pages of a crawl; return their number.

    `full_page`: Markdown of more than the main content. `by`: a folder with a file for each host or date.
    """
    written = Tally()
    if by is not None or chosen is Format.MARKDOWN:
        assert out is not None
        replace_folder(out, files(rows, chosen, written, csv_safe, full_page, by))
    else:
        name = out.name if out else "export.warc.gz"
        write_whole(out, whole_file(rows, chosen, written, name, csv_safe))
    return written.n


def files(
    rows: PageRows, chosen: Format, written: Tally, csv_safe: bool, full_page: bool, by: str | None
) -> Iterator[File]:
    """Return the files of a folder: one for each page, or with `by` for each host or date."""
    if by is not None:
        return partitions.files(rows, by, chosen, written, csv_safe)
    return written.each(markdown.files(rows, rows.pages(), full_page))


def whole_file(rows: PageRows, chosen: Format, written: Tally, name: str, csv_safe: bool = False) -> Iterator[bytes]:
    """Return the file of all pages; in a WARC file, the crawl's redirects and errors follow."""
    yield from blocks_of(rows, rows.pages(), chosen, written, name, csv_safe)
    if chosen is Format.WARC:
        yield from response_records(rows.responses(), rows.segments)


def blocks_of(
    rows: PageRows, found: Iterable[Page], chosen: Format, written: Tally, name: str, csv_safe: bool = False
) -> Iterator[bytes]:
    """Return the file of these pages; not for Markdown, which has a file for each page."""
    if chosen is Format.WARC:
        return _warc(found, rows.segments, written, name)
    return table(map(rows.row, found), rows.columns, chosen, written, csv_safe)


def _warc(found: Iterable[Page], segments: SegmentStore, written: Tally, name: str) -> Iterator[bytes]:
    yield warc.warcinfo(name)
    yield from written.each(warc_records(found, segments))


def response_records(found: Iterable[Response], segments: SegmentStore) -> Iterator[bytes]:
    """Yield the stored records of redirects and errors, each checked."""
    for response in found:
        member = segments.read_bytes(response.body)
        warc.read(member, response.body)
        yield warc.with_block_digest(member)


def warc_records(found: Iterable[Page], segments: SegmentStore) -> Iterator[bytes]:
    """Yield the stored records, each checked: a damaged one is an error. A page without a stored body is left out.

    A page that has not changed since an earlier crawl has the record of that crawl, and a revisit with its own date.
    """
    for page in found:
        if page.body is not None:
            member = segments.read_bytes(page.body)
            record = warc.read(member, page.body)
            again = warc.revisit(record, page) if page.unchanged else b""
            yield warc.with_block_digest(member) + again
