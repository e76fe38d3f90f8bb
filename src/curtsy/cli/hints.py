"""Commands that people are told to type: with the options that find this folder again."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import Any

#: where a crawl is: every command that is named needs them again
PLACE = ("--config", "--data-dir")
#: what else belongs to the command and not to the crawl
OF_CRAWL = ("--processes", "--out")


def command(*words: str) -> str:
    """`curtsy <words>`, with the options of this command that say where the crawls are."""
    return shlex.join(["curtsy", *words, *given(PLACE)])


def resume(id: str, kept: Mapping[str, Any] | None = None) -> str:
    """The command that goes on with a crawl; what is not stored with it (`kept`) is named."""
    more = given(OF_CRAWL) if sys.argv[1:2] == ["crawl"] else []
    said = shlex.join([*shlex.split(command("crawl", "--resume", id)), *more])
    withheld = (kept or {}).get("withheld")
    return f"{said} (give again what is not stored: {', '.join(withheld)})" if withheld else said


def given(names: Iterable[str]) -> list[str]:
    """These options as they stand on this command line."""
    found: list[str] = []
    words = iter(sys.argv[1:])
    for word in words:
        name, told, _ = word.partition("=")
        if name in names:
            found += [word] if told else [word, next(words, "")]
    return found
