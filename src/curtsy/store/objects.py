"""Segments in an object store (S3 and others that obstore supports): one object per commit, merged by the sweeper."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import obstore
from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError
from obstore.store import from_url

from curtsy.core.errors import Damaged, SegmentsUnavailable, UsageError
from curtsy.core.model import BodyRef
from curtsy.store import warc
from curtsy.store.segments import new_name, pack
from curtsy.store.warc import Packed, WarcItem, WarcRecord

_NO_OBJECT = "no-such-object"


class ObjectSegments:
    """An object per append. Credentials and endpoint come from the environment (AWS_*, ...) or from `config`."""

    def __init__(self, url: str, writer_id: str | None = None, **config: Any) -> None:
        self._url = url
        self._writer_id = writer_id or os.urandom(4).hex()
        self._count = 0
        try:
            self._store = from_url(url, **config)
        except (BaseError, ValueError) as error:
            raise UsageError(
                f"The setting segments_url is {url!r}, which names no object store we can use ({_first_line(error)}). "
                "Write s3://bucket/prefix, or leave it out for a local folder."
            ) from error

    def append(self, items: Sequence[WarcItem | Packed]) -> list[BodyRef]:
        if not items:
            return []
        self._count += 1
        name = new_name(self._writer_id, self._count)
        parts, refs = pack(name, 0, items)
        self.put(name, b"".join(parts))
        return refs

    def put(self, name: str, data: bytes) -> None:
        """Write one object: it is complete, or does not exist."""
        try:
            obstore.put(self._store, name, data)
        except (BaseError, OSError) as error:
            raise self._unavailable("written", error) from error

    def read(self, ref: BodyRef) -> WarcRecord:
        return warc.read(self.read_bytes(ref), ref)

    def read_bytes(self, ref: BodyRef) -> bytes:
        try:
            data = bytes(obstore.get_range(self._store, ref.segment, start=ref.offset, length=ref.length))
        except (NotFoundError, FileNotFoundError) as error:
            raise Damaged(f"The segment {ref.segment} is not in {self._url}.") from error
        except (BaseError, OSError) as error:
            raise self._unavailable("read", error) from error
        if len(data) < ref.length:
            raise Damaged(f"The segment {ref.segment} in {self._url} is shorter than the database says.")
        return data

    def read_whole(self, name: str) -> bytes:
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except (NotFoundError, FileNotFoundError) as error:
            raise Damaged(f"The segment {name} is not in {self._url}.") from error
        except (BaseError, OSError) as error:
            raise self._unavailable("read", error) from error

    def merged_name(self) -> str:
        self._count += 1
        return new_name(self._writer_id, self._count)

    def size_at_rest(self, name: str) -> int | None:
        try:
            return int(obstore.head(self._store, name)["size"])
        except (NotFoundError, FileNotFoundError):
            return None
        except (BaseError, OSError) as error:
            raise self._unavailable("read", error) from error

    def overwrite(self, name: str, parts: Sequence[tuple[int, bytes]]) -> None:
        """Replace the object by one with the same name and length: readers see the old or the new one."""
        data = bytearray(self.read_whole(name))
        for offset, part in parts:
            data[offset : offset + len(part)] = part
        self.put(name, bytes(data))

    def older_than(self, age_s: float) -> list[tuple[str, int]]:
        before = datetime.now(UTC) - timedelta(seconds=age_s)
        try:
            listed = [entry for part in obstore.list(self._store) for entry in part]
        except (BaseError, OSError) as error:
            raise self._unavailable("listed", error) from error
        return sorted(
            (entry["path"], entry["size"])
            for entry in listed
            if entry["path"].endswith(".warc.gz") and entry["last_modified"] <= before
        )

    def delete(self, names: Iterable[str]) -> int:
        doomed = list(names)
        try:
            if doomed:
                obstore.delete(self._store, doomed)
        except (BaseError, OSError) as error:
            raise self._unavailable("deleted", error) from error
        return len(doomed)

    def check(self) -> None:
        """Raises if the object store does not answer. It need not permit reading an object that does not exist."""
        try:
            obstore.head(self._store, _NO_OBJECT)
        except (NotFoundError, FileNotFoundError, PermissionDeniedError):
            return
        except (BaseError, OSError) as error:
            raise self._unavailable("reached", error) from error

    def recover(self, committed: Callable[[], Mapping[str, int]]) -> int:
        """Objects are never torn."""
        return 0

    def close(self) -> None:
        """Nothing is kept open."""

    def _unavailable(self, verb: str, error: Exception) -> SegmentsUnavailable:
        return SegmentsUnavailable(
            f"The object store {self._url} cannot be {verb}: {_first_line(error)}. Check that it is reachable and "
            "that the credentials in the environment allow it. Work continues when it is back."
        )


class Objects:
    """Objects under a prefix, for exports: each is complete, or does not exist."""

    def __init__(self, url: str) -> None:
        self._url = url
        try:
            self._store = from_url(url)
        except (BaseError, ValueError) as error:
            raise UsageError(
                f"{url!r} names no object store we can use ({_first_line(error)}). Write s3://bucket/key."
            ) from error

    def names(self) -> Iterator[str]:
        """The names of the objects directly under the prefix."""
        try:
            yield from (entry["path"] for entry in obstore.list_with_delimiter(self._store)["objects"])
        except (BaseError, OSError) as error:
            raise self._unavailable("listed", error) from error

    def read(self, name: str) -> bytes | None:
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except (NotFoundError, FileNotFoundError):
            return None
        except (BaseError, OSError) as error:
            raise self._unavailable("read", error) from error

    def any(self) -> bool:
        try:
            return any(True for part in obstore.list(self._store, chunk_size=1) for _ in part)
        except (BaseError, OSError) as error:
            raise self._unavailable("listed", error) from error

    def stream(self, name: str, blocks: Iterable[bytes], part_bytes: int, under_way: int) -> None:
        """Upload in parts while `blocks` are produced. An error of `blocks` aborts the upload and leaves nothing."""
        try:
            obstore.put(self._store, name, _parts(blocks, part_bytes), chunk_size=part_bytes, max_concurrency=under_way)
        except (BaseError, OSError) as error:
            raise self._unavailable("written", error) from error

    def clear(self, keep: str | None = None) -> None:
        """Delete everything under the prefix, except the object of that name."""
        try:
            for part in obstore.list(self._store, chunk_size=1000):
                if doomed := [entry["path"] for entry in part if entry["path"] != keep]:
                    obstore.delete(self._store, doomed)
        except (BaseError, OSError) as error:
            raise self._unavailable("deleted", error) from error

    def _unavailable(self, verb: str, error: Exception) -> SegmentsUnavailable:
        return SegmentsUnavailable(
            f"The object store {self._url} cannot be {verb}: {_first_line(error)}. See that it is reachable and that "
            "the credentials in the environment allow it."
        )


def _parts(blocks: Iterable[bytes], part_bytes: int) -> Iterator[bytes]:
    """Blocks joined to the size of a part: only the last part may be small."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(block)
        if size >= part_bytes:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _first_line(error: Exception) -> str:
    """Without the other lines: they are a dump of internal structures of the library."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
