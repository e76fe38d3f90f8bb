"""Seeds as people give them: on the command line, in a file, or piped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from curtsy.core.errors import UsageError
from curtsy.rules.urls import normalise, veiled


def read(urls: Iterable[str], file: Path | None) -> Iterator[str]:
    """Normalised seeds, in order; a line of the file may be empty or a comment (#)."""
    for number, url in enumerate(urls, 1):
        yield _normal(url, f"argument {number}")
    if file is None:
        return
    if str(file) == "-":
        yield from _lines(sys.stdin, "standard input")
        return
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            yield from _lines(lines, str(file))
    except OSError as error:
        raise UsageError(f"The seeds in {file} cannot be read: {error.strerror}.") from error


def _lines(lines: Iterable[str], where: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        text = line.strip().lstrip("\ufeff")
        if text and not text.startswith("#"):
            yield _normal(text, f"{where}, line {number}")


def _normal(text: str, where: str) -> str:
    url = normalise(text if "://" in text else f"https://{text}")
    if url is None:
        raise UsageError(f"{veiled(text)!r} ({where}) is no http or https URL. Write it as https://example.com/path.")
    return url
