"""Seeds of the command line: arguments, lines of a file, or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from curtsy.control.seeds import each
from curtsy.core.errors import UsageError


def read(urls: Iterable[str], file: Path | None) -> Iterator[str]:
    """Normal URLs, in order. A line of the file may be empty or a comment (#); a URL may lack its scheme."""
    yield from each(map(_with_scheme, urls), place="argument {}", first=1)
    if file is None:
        return
    if str(file) == "-":
        yield from _lines(sys.stdin, "standard input")
        return
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            yield from _lines(lines, str(file).replace("{", "{{").replace("}", "}}"))
    except OSError as error:
        raise UsageError(f"The seeds in {file} cannot be read: {error.strerror}.") from error


def _lines(lines: Iterable[str], where: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        text = line.strip().lstrip("\ufeff")
        if text and not text.startswith("#"):
            yield from each([_with_scheme(text)], place=f"{where}, line {{}}", first=number)


def _with_scheme(text: str) -> str:
    return text if "://" in text else f"https://{text}"
