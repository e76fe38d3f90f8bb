"""A folder of Markdown that grows while a crawl runs: a file, or an object, for each page with text.

Each file is complete or absent, and has the name of its URL: a page that is written again replaces its file. The mark
of the folder has the token of the crawl's note, so a resumed crawl continues its own folder only.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from curtsy.core.model import Page
from curtsy.export import markdown
from curtsy.export.live_notes import Note
from curtsy.export.page_rows import PageRows
from curtsy.export.targets import MARK, MARK_TEXT, ObjectPlace, place
from curtsy.store.segments import sync_folder

#: the file that is being written: a killed process leaves at most this one
_PART = ".part"
#: objects that are uploaded at a time
_UPLOADS = 8


class _Files(Protocol):
    def read(self, name: str) -> bytes | None:
        """Return the content of a small file, or None."""

    def write(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Replace these files; each is complete or absent."""

    def clear(self) -> None:
        """Delete everything but the mark."""

    def sync(self) -> None:
        """Durable on return."""

    def close(self) -> None:
        """Let another process write there."""


class MarkdownFolder:
    """Writes pages to a folder. `kept`: the note that the folder agrees with."""

    keeps_notes = True
    length = 0

    def __init__(self, out: Path | ObjectPlace, fd: int | None, rows: PageRows, kept: Note | None) -> None:
        """`fd` holds the lock of a local folder."""
        self._files: _Files = _ObjectFiles(out) if isinstance(out, ObjectPlace) else _LocalFiles(out, fd)
        self._rows = rows
        agrees = kept is not None and self._files.read(MARK) == _mark(kept.identity)
        self.kept = kept if agrees else None
        self.identity = self.kept.identity if self.kept is not None else ""

    def restart(self, _: bytes) -> int:
        """Empty the folder. It has a mark at any time, so that an interrupted restart can be repeated."""
        self.identity = secrets.token_hex(8)
        self._files.write([(MARK, _mark(self.identity))])
        self._files.clear()
        return 0

    def append(self, found: Iterable[Page]) -> int:
        made = [(name, b"".join(blocks)) for name, blocks in markdown.files(self._rows, found)]
        self._files.write(made)
        return len(made)

    def sync(self) -> None:
        self._files.sync()

    def close(self) -> None:
        self._files.close()


class _LocalFiles:
    def __init__(self, out: Path, fd: int | None) -> None:
        assert fd is not None
        self._path, self._fd = place(out), fd
        #: folders with files that are not durable yet
        self._changed: set[Path] = set()

    def read(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, files: Iterable[tuple[str, bytes]]) -> None:
        for name, data in files:
            path = self._path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            part = self._path / _PART
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            self._changed |= {path.parent, self._path}

    def clear(self) -> None:
        for path in list(self._path.iterdir()):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != MARK:
                path.unlink()

    def sync(self) -> None:
        for folder in self._changed:
            sync_folder(folder)
        self._changed.clear()

    def close(self) -> None:
        (self._path / _PART).unlink(missing_ok=True)
        os.close(self._fd)


class _ObjectFiles:
    """Objects have no lock that ends with its holder: the user must ensure exclusive access."""

    def __init__(self, out: ObjectPlace) -> None:
        self._folder = out.folder()

    def read(self, name: str) -> bytes | None:
        return self._folder.read(name)

    def write(self, files: Iterable[tuple[str, bytes]]) -> None:
        with ThreadPoolExecutor(_UPLOADS) as pool:
            for _ in pool.map(lambda file: self._folder.write(file[0], [file[1]]), files):
                pass

    def clear(self) -> None:
        self._folder.clear(keep=MARK)

    def sync(self) -> None:
        """An object is durable when it is written."""

    def close(self) -> None:
        """Nothing is kept open."""


def _mark(identity: str) -> bytes:
    return MARK_TEXT + f"crawl --out {identity}\n".encode()
