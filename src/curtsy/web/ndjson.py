"""Seeds as NDJSON: the first line has the options of the crawl, every other line is a seed. Read in parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from typing import IO

from pydantic import ValidationError
from werkzeug.exceptions import ClientDisconnected

from curtsy.control.crawl_request import CrawlRequest
from curtsy.control.uploads import PART, Part
from curtsy.core.errors import RefusedSeeds
from curtsy.web.problems import Problem, of_validation

_BLOCK = 1 << 16
#: the longest line: neither URLs nor options need more
MAX_LINE = 1 << 20


class Upload:
    """One body. The options are read at once, the seeds while `parts` is iterated."""

    def __init__(self, stream: IO[bytes], length: int | None) -> None:
        """`length` is the Content-Length; None without one."""
        self._lines = _lines(_blocks(stream, length))
        first = next(self._lines, b"")
        try:
            self.options = CrawlRequest.model_validate_json(first, strict=True)
        except ValidationError as error:
            raise of_validation("line 1", error) from None
        #: digest of the first line
        self.digest = hashlib.sha256(first).hexdigest()
        self._hash = hashlib.sha256(first)
        self._received = len(first)

    def parts(self) -> Iterator[Part]:
        """Parts always end at the same lines, so that a repeated upload is recognized part by part."""
        number = 2
        ahead = next(self._lines, None)
        while ahead is not None:
            lines = [ahead, *islice(self._lines, PART - 1)]
            # One more line shows that this is not the last part, without waiting for a whole next part.
            ahead = next(self._lines, None)
            body = b"\n".join(lines)
            self._hash.update(body)
            self._received += len(body)
            yield Part(
                seeds=_seeds(lines, number),
                first=number,
                place="line {}",
                received=self._received,
                digest=self._hash.hexdigest(),
                last=ahead is None,
            )
            number += len(lines)


def _blocks(stream: IO[bytes], length: int | None) -> Iterator[bytes]:
    """The body in blocks. A body that ends early must not count as complete."""
    read = 0
    try:
        while block := stream.read(_BLOCK):
            read += len(block)
            yield block
    except (OSError, ClientDisconnected) as error:
        raise _broken() from error
    if length is not None and read != length:
        raise _broken()


def _broken() -> Problem:
    return Problem(400, "upload-broken", "The body ended early. Send it again under the same Idempotency-Key.")


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    tail = b""
    for block in blocks:
        *whole, tail = (tail + block).split(b"\n")
        yield from whole
        if len(tail) > MAX_LINE:
            raise Problem(422, "invalid-request", f"A line is longer than {MAX_LINE} bytes. Write one seed per line.")
    if tail:
        yield tail


def _seeds(lines: list[bytes], first: int) -> list[str]:
    seeds: list[str] = []
    wrong: list[tuple[str, str]] = []
    for number, line in enumerate(lines, first):
        try:
            seeds.append(_seed(line))
        except (ValueError, RecursionError):
            if len(wrong) < 20:
                wrong.append((f"line {number}", 'not "url" and not {"url": "..."}'))
    if wrong:
        raise RefusedSeeds(wrong)
    return seeds


def _seed(line: bytes) -> str:
    if line[:1] == b'"' and line.count(b'"') == 2 and line[-1:] == b'"' and b"\\" not in line:
        return line[1:-1].decode()
    found = json.loads(line)
    if isinstance(found, dict) and found.keys() == {"url"}:
        found = found["url"]
    if not isinstance(found, str):
        raise ValueError
    return found
