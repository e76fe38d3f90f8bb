"""Commands that people are told to type: as this program was started, with what finds this folder again.

What cannot stand in a command stands on lines of its own below it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from curtsy.core.errors import SettingsError
from curtsy.core.settings_loading import from_file

#: where a crawl is: every command that is named needs them again
PLACE = ("--config", "--data-dir")
#: the same in the environment
PLACE_SETTINGS = ("config", "data_dir", "store_url", "frontier_url", "segments_url")
#: what else belongs to the command and not to the crawl
OF_CRAWL = ("--processes", "--out")


def program() -> str:
    """`curtsy`, if that is this program; else how it is found, for example `.venv/bin/curtsy`."""
    beside = Path(sys.executable).parent / "curtsy"
    started = Path(sys.argv[0])
    if started.name != "curtsy" or not started.is_file():
        started = beside
    found = shutil.which("curtsy")
    if found is not None and any(path.exists() and os.path.samefile(found, path) for path in (started, beside)):
        return "curtsy"
    if not started.exists():
        return shlex.join([sys.executable, "-m", "curtsy"])
    near = started.relative_to(Path.cwd()) if started.is_relative_to(Path.cwd()) else started
    return shlex.quote(str(near))


def ending() -> str:
    """The options of this command that say where the crawls are, to stand behind another."""
    return "".join(f" {shlex.quote(word)}" for word in given(PLACE))


def beginning() -> str:
    """The program, behind the variables that say where the crawls are; not those that hold a password."""
    told = "".join(f"{_variable(name)}={shlex.quote(value)} " for name, value in _environment() if "@" not in value)
    return told + program()


def command(*words: str) -> str:
    """`curtsy <words>`, with all that says where the crawls are."""
    return "\n".join([f"{beginning()} {shlex.join(words)}{ending()}", *_unsaid(())])


def resume(id: str, kept: Mapping[str, Any] | None = None) -> str:
    """The command that goes on with a crawl; below it, what is not stored with it (`kept`) and not given so."""
    more = given(OF_CRAWL) if sys.argv[1:2] == ["crawl"] else []
    said = f"{beginning()} {shlex.join(['crawl', '--resume', id])}{ending()}"
    said += "".join(f" {shlex.quote(word)}" for word in more)
    return "\n".join([said, *_unsaid((kept or {}).get("withheld", ()))])


def _unsaid(withheld: Iterable[str]) -> Iterator[str]:
    """A line for what the command needs and does not say."""
    secret = {name for name, value in _environment() if "@" in value}
    secret |= {name for name in withheld if _variable(name) in os.environ}
    if secret:
        yield f"It needs {' and '.join(map(_variable, sorted(secret)))} in the environment, as now."
    if lacking := sorted(set(withheld) - secret - _in_file()):
        yield f"Give again what is not stored: {', '.join(lacking)}."


def _environment() -> Iterator[tuple[str, str]]:
    """Settings that say where the crawls are, as the environment gives them."""
    for name in PLACE_SETTINGS:
        if (value := os.environ.get(_variable(name))) and not given([f"--{name.replace('_', '-')}"]):
            yield name, value


def _variable(name: str) -> str:
    return f"CURTSY_{name.upper()}"


def _in_file() -> set[str]:
    """The settings in the file that the command names, or that lies here."""
    words = given(("--config",))
    try:
        return set(from_file(Path(words[-1].removeprefix("--config=")) if words else None))
    except SettingsError:
        return set()


def given(names: Iterable[str]) -> list[str]:
    """These options as they stand on this command line."""
    found: list[str] = []
    words = iter(sys.argv[1:])
    for word in words:
        name, told, _ = word.partition("=")
        if name in names:
            found += [word] if told else [word, next(words, "")]
    return found
