"""Where an export goes: standard output, a file or folder here, or an object store (`s3://bucket/key`, ...).

What is written is whole, or it is not there: a file stands beside its place under another name until it is complete, an
object appears when its last part has arrived. A pipe or a device is written into, and a symbolic link is followed: what
stands under that name stays what it is.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from curtsy.core.errors import UsageError
from curtsy.store.objects import Objects

#: bytes of one part of an upload, and how many are under way at a time: what an upload takes of memory
PART_BYTES = 16 * 1024 * 1024
PARTS_UNDER_WAY = 2


class ObjectPlace:
    """An object, or all whose names begin so. Credentials come from the environment, as for segments."""

    def __init__(self, url: str) -> None:
        self.url = url
        scheme, _, rest = url.partition("://")
        bucket, _, self.key = rest.partition("/")
        if not bucket:
            raise UsageError(f"{url!r} names no bucket. Write it as {scheme}://bucket/key.")
        self._root = f"{scheme}://{bucket}"

    @property
    def name(self) -> str:
        """The last part of the key; as of a path, without a slash at its end."""
        return self.key.rstrip("/").rpartition("/")[2]

    def is_dir(self) -> bool:
        return self.key == "" or self.key.endswith("/")

    def put(self, blocks: Iterable[bytes]) -> None:
        if not self.key or self.is_dir():
            raise UsageError(f"{self.url} names no object: add its name.")
        _objects(self._root).stream(self.key, blocks, PART_BYTES, PARTS_UNDER_WAY)

    def folder(self) -> ObjectFolder:
        return ObjectFolder(self.url.rstrip("/"))

    def __str__(self) -> str:
        return self.url


#: None is standard output
Target = Path | ObjectPlace | None


def target_of(out: str | None) -> Target:
    """What --out names."""
    if out is None:
        return None
    if not out:
        raise UsageError("--out is empty: name a file or a folder, or leave it out for standard output.")
    if "://" not in out:
        return Path(out)
    return Path(out.removeprefix("file://")) if out.startswith("file://") else ObjectPlace(out)


def folder_of(target: Path | ObjectPlace) -> Folder:
    return target.folder() if isinstance(target, ObjectPlace) else LocalFolder(target)


# One file


def write_whole(target: Target, blocks: Iterable[bytes]) -> None:
    """These bytes, under that name when they are complete; to standard output and pipes as they come."""
    if isinstance(target, ObjectPlace):
        target.put(blocks)
        return
    with _naming(target), _whole(target) as file:
        for block in blocks:
            file.write(block)


@contextmanager
def _naming(target: Path | None) -> Iterator[None]:
    """An error of writing does not say by itself where."""
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
    """Where it goes once links are followed, in a folder that is there."""
    target = out.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


# Complaining before the work begins


def is_special(out: Path) -> bool:
    """A pipe, a socket or a device, also behind a link: nothing that another file may take the place of."""
    try:
        mode = out.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def check_file(out: Path, kind: str, *, seeks: bool) -> None:
    """It can be written; `seeks`: not into a pipe."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder; {kind} is written to a file.")
    if is_special(out):
        if seeks:
            raise UsageError(f"{out} is a pipe or a device; {kind} needs a file.")
        if not os.access(out, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return
    check_parent(out)


def check_parent(out: Path) -> None:
    """Something can be made there."""
    folder = out.resolve().parent
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    with tempfile.TemporaryFile(dir=nearest):
        pass


# A folder that grows


class Folder(Protocol):
    """A folder here, or the objects under a prefix."""

    def names(self) -> Iterator[str]:
        """Of the files that lie in it, not below it."""

    def read(self, name: str) -> bytes | None:
        """A small file; None if it is not there."""

    def write(self, name: str, blocks: Iterable[bytes]) -> None:
        """Durable on return, and whole or not there."""

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
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def hold(self) -> Iterator[None]:
        self._path.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"Another export writes to {self._path} at this moment: wait until it is done."
                ) from None
            yield
        finally:
            os.close(file)


class ObjectFolder:
    def __init__(self, url: str) -> None:
        self._objects = _objects(url)

    def names(self) -> Iterator[str]:
        return self._objects.names()

    def read(self, name: str) -> bytes | None:
        return self._objects.read(name)

    def write(self, name: str, blocks: Iterable[bytes]) -> None:
        self._objects.stream(name, blocks, PART_BYTES, PARTS_UNDER_WAY)

    def is_used(self) -> bool:
        """Whether there is any object under the prefix."""
        return self._objects.any()

    def clear(self) -> None:
        """Delete everything in it."""
        self._objects.clear()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """An object store has no lock that ends with its holder: whoever exports sees to it."""
        yield


def _objects(url: str) -> Objects:
    return Objects(url)
