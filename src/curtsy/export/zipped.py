"""Named files as a zip file, made and read without holding a file in memory."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from curtsy.core.errors import Damaged
from curtsy.export.tables import BLOCK, Sink

File = tuple[str, Iterable[bytes]]


def zipped(files: Iterable[File]) -> Iterator[bytes]:
    """The blocks of a zip file."""
    sink = Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as package:
        for name, blocks in files:
            with package.open(name, "w", force_zip64=True) as file:
                for block in blocks:
                    file.write(block)
                    if taken := sink.take():
                        yield taken
    yield sink.take()


@contextmanager
def unzipped(blocks: Iterable[bytes]) -> Iterator[list[File]]:
    """The files of a zip file that arrives in blocks. It is kept in a temporary file: its list of files comes last."""
    with tempfile.TemporaryFile(prefix="curtsy-") as kept:
        kept.writelines(blocks)
        try:
            package = zipfile.ZipFile(kept)
        except zipfile.BadZipFile as error:
            raise Damaged(f"The server sent a zip file that cannot be read: {error}.") from error
        with package:
            yield [(_safe(name), _content(package, name)) for name in package.namelist()]


def _content(package: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    with package.open(name) as file:
        while block := file.read(BLOCK):
            yield block


def _safe(name: str) -> str:
    """A server must not choose a place outside of the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise Damaged(f"The server sent a file with the name {name!r}, which leads out of the folder.")
    return name
