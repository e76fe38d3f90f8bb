"""Export targets: standard output, a local file or folder, or an object store (`s3://bucket/key`, ...).

Output is complete or absent: a file has a temporary name until it is complete, and an object appears when its last part
has arrived. Pipes and devices are written directly, and symbolic links are followed.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from curtsy.core.errors import UsageError
from curtsy.core.file_locks import try_lock
from curtsy.store.objects import Objects
from curtsy.store.segments import sync_folder

#: bytes of one part of an upload, and parts in flight: together the memory of an upload
PART_BYTES = 16 * 1024 * 1024
PARTS_UNDER_WAY = 2


class ObjectPlace:
    """An object, or all objects with this prefix. Credentials come from the environment, as for segments."""

    def __init__(self, url: str) -> None:
        self.url = url
        scheme, _, rest = url.partition("://")
        bucket, _, self.key = rest.partition("/")
        if not bucket:
            raise UsageError(f"{url!r} has no bucket. Use {scheme}://bucket/key.")
        self._root = f"{scheme}://{bucket}"

    @property
    def name(self) -> str:
        """The last part of the key, without a trailing slash."""
        return self.key.rstrip("/").rpartition("/")[2]

    def is_dir(self) -> bool:
        return self.key == "" or self.key.endswith("/")

    def put(self, blocks: Iterable[bytes]) -> None:
        if not self.key or self.is_dir():
            raise UsageError(f"{self.url} names no object. Add its name.")
        Objects(self._root).stream(self.key, blocks, PART_BYTES, PARTS_UNDER_WAY)

    def folder(self) -> ObjectFolder:
        return ObjectFolder(self.url.rstrip("/"))

    def __str__(self) -> str:
        return self.url


#: None is standard output
Target = Path | ObjectPlace | None


def target_of(out: str | None) -> Target:
    """Return the target that --out names."""
    if out is None:
        return None
    if not out:
        raise UsageError("--out is empty. Name a file or a folder, or omit it for standard output.")
    if "://" not in out:
        return Path(out)
    return Path(out.removeprefix("file://")) if out.startswith("file://") else ObjectPlace(out)


def folder_of(target: Path | ObjectPlace) -> Folder:
    return target.folder() if isinstance(target, ObjectPlace) else LocalFolder(target)


# One file


def write_whole(target: Target, blocks: Iterable[bytes]) -> None:
    """Write the blocks; a file gets its name when it is complete, standard output and pipes are written directly."""
    if isinstance(target, ObjectPlace):
        target.put(blocks)
        return
    with _naming(target), _whole(target) as file:
        for block in blocks:
            file.write(block)


@contextmanager
def _naming(target: Path | None) -> Iterator[None]:
    """Add the file name to write errors."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(target or "standard output")) from error


@contextmanager
def _whole(out: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears only when it is complete."""
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if is_special(out):
        with open(os.open(out, os.O_WRONLY | os.O_CLOEXEC), "wb") as file:
            yield file
        return
    target = place(out)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def place(out: Path) -> Path:
    """Resolve links and create the parent folder."""
    target = out.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


# A folder that an export makes and replaces


#: marks a folder as an export, so that the next export may replace it
MARK = ".curtsy-export"
MARK_TEXT = b"Made by curtsy export. The next export to this folder replaces it.\n"


def replace_folder(out: Path | ObjectPlace, files: Iterable[tuple[str, Iterable[bytes]]]) -> None:
    """Write the files of a folder, which gets its name when it is complete.

    An object store has no folders: its objects appear one by one, after earlier ones were deleted.
    """
    if not isinstance(out, ObjectPlace):
        _replace_local(place(out), files)
        return
    folder = out.folder()
    folder.clear()
    folder.write(MARK, [MARK_TEXT])
    for name, blocks in files:
        folder.write(name, blocks)


def _replace_local(out: Path, files: Iterable[tuple[str, Iterable[bytes]]]) -> None:
    made = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        os.chmod(made, 0o777 & ~umask())
        (made / MARK).write_bytes(MARK_TEXT)
        folders: set[str] = set()
        for name, blocks in files:
            folder = name.rpartition("/")[0]
            if folder not in folders:
                (made / folder).mkdir(parents=True, exist_ok=True)
                folders.add(folder)
            with open(f"{made}/{name}", "wb") as file:
                file.writelines(blocks)
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


def check_folder(out: Path | ObjectPlace) -> None:
    """Raise an error if the folder holds something that is not an export."""
    if isinstance(out, ObjectPlace):
        folder = out.folder()
        if folder.read(MARK) is None and folder.is_used():
            raise UsageError(f"{out} contains objects and is not an export. Use another prefix, or empty it.")
        return
    if out.exists() and not (out / MARK).exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} exists and is not an export. Use another folder, or empty it.")
    check_parent(out)


# Checks before the work begins


def is_special(out: Path) -> bool:
    """Return whether it is a pipe, socket or device, also behind a link: a file must not replace it."""
    try:
        mode = out.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def check_file(out: Path, kind: str, *, seeks: bool) -> None:
    """Raise an error if the file cannot be written; `seeks`: it cannot be a pipe."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder, but {kind} is written to a file.")
    if is_special(out):
        if seeks:
            raise UsageError(f"{out} is a pipe or a device, but {kind} needs a file.")
        if not os.access(out, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return
    check_parent(out)


def check_parent(out: Path) -> None:
    """Raise an error if no file can be created there."""
    folder = out.resolve().parent
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    with tempfile.TemporaryFile(dir=nearest):
        pass


# Folders of increments


class Folder(Protocol):
    """A local folder, or the objects under a prefix."""

    def names(self) -> Iterator[str]:
        """Names of the files directly in it."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file, or None."""

    def write(self, name: str, blocks: Iterable[bytes]) -> None:
        """Durable on return; complete or absent."""

    def hold(self) -> Any:
        """A context in which no other export of this machine writes there."""


class LocalFolder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> Iterator[str]:
        if self._path.is_dir():
            yield from (entry.name for entry in os.scandir(self._path) if entry.is_file())

    def read(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, blocks: Iterable[bytes]) -> None:
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, blocks)
        sync_folder(path.parent)

    @contextmanager
    def hold(self) -> Iterator[None]:
        self._path.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not try_lock(file):
                raise UsageError(f"Another export is writing to {self._path}. Wait until it ends.")
            yield
        finally:
            os.close(file)


class ObjectFolder:
    def __init__(self, url: str) -> None:
        self._objects = Objects(url)

    def names(self) -> Iterator[str]:
        return self._objects.names()

    def read(self, name: str) -> bytes | None:
        return self._objects.read(name)

    def write(self, name: str, blocks: Iterable[bytes]) -> None:
        self._objects.stream(name, blocks, PART_BYTES, PARTS_UNDER_WAY)

    def is_used(self) -> bool:
        """Return whether there is any object under the prefix."""
        return self._objects.any()

    def clear(self, keep: str | None = None) -> None:
        """Delete everything in it, except the file of that name."""
        self._objects.clear(keep)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Object stores have no lock that ends with its holder: the caller must ensure exclusive access."""
        yield
