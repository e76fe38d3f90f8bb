"""Notes about the outputs of running crawls, in the data folder: a resumed crawl continues after them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from curtsy.core.model import Crawl
from curtsy.export.targets import ObjectPlace, write_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """How far an output was written."""

    #: an absolute path, or the URL of an object
    path: str
    format: str
    #: number of the last page, and the beginning of its fingerprint
    after: int = 0
    tail: str = ""
    #: length of the file up to it
    length: int = 0
    #: of what this crawl writes: an output that something else put there is written again
    identity: str = ""
    pages: int = 0
    #: number of the last redirect or error, in a WARC file
    last_response: int = 0


def notes_of(data_dir: Path, crawl: str) -> list[Note]:
    """The outputs of a crawl that a process has left unfinished."""
    found = (read_note(path) for path in sorted(_folder(data_dir).glob(f"{crawl}-*.json")))
    return [note for note in found if note is not None]


def place_of(out: Path | ObjectPlace) -> str:
    """How a note names an output."""
    return str(out.absolute()) if isinstance(out, Path) else out.url


def note_path(data_dir: Path, crawl: Crawl, out: Path | ObjectPlace) -> Path:
    digest = hashlib.sha256(place_of(out).encode("utf-8", "surrogateescape")).hexdigest()
    return _folder(data_dir) / f"{crawl.id}-{digest[:12]}.json"


def read_note(path: Path) -> Note | None:
    try:
        return Note(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def write_note(path: Path, note: Note) -> None:
    write_whole(path, [json.dumps(asdict(note)).encode()])


def _folder(data_dir: Path) -> Path:
    return data_dir / "outputs"
