"""Commands that messages suggest, written as this program was started, with the options that find its data folder.

What cannot be part of a command follows on lines of its own.
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

#: options that locate a crawl: every suggested command repeats them
PLACE = ("--config", "--data-dir")
#: settings of the environment that do the same
PLACE_SETTINGS = ("config", "data_dir", "store_url", "frontier_url", "segments_url")
#: options that belong to the command and not to the crawl
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
    """The options of this command that locate the crawls, for the end of another command."""
    return "".join(f" {shlex.quote(word)}" for word in options_of(PLACE))


def beginning() -> str:
    """The program, preceded by the variables that locate the crawls, except those that contain a password."""
    variables = "".join(
        f"{_variable(name)}={shlex.quote(value)} " for name, value in _environment() if "@" not in value
    )
    return variables + program()


def command(*words: str) -> str:
    """`curtsy <words>`, with everything that locates the crawls."""
    return "\n".join([f"{beginning()} {shlex.join(words)}{ending()}", *_notes(())])


def resume(id: str, kept: Mapping[str, Any] | None = None) -> str:
    """The command that resumes a crawl; below it, settings that are not stored with it (`kept`)."""
    more = options_of(OF_CRAWL) if sys.argv[1:2] == ["crawl"] else []
    text = f"{beginning()} {shlex.join(['crawl', '--resume', id])}{ending()}"
    text += "".join(f" {shlex.quote(word)}" for word in more)
    return "\n".join([text, *_notes((kept or {}).get("withheld", ()))])


def _notes(withheld: Iterable[str]) -> Iterator[str]:
    """Lines about what the command needs and does not contain."""
    secret = {name for name, value in _environment() if "@" in value}
    secret |= {name for name in withheld if _variable(name) in os.environ}
    if secret:
        yield f"It needs {' and '.join(map(_variable, sorted(secret)))} in the environment."
    if lacking := sorted(set(withheld) - secret - _in_file()):
        yield f"Give these settings again; they are not stored: {', '.join(lacking)}."


def _environment() -> Iterator[tuple[str, str]]:
    """Settings that locate the crawls and come from the environment."""
    for name in PLACE_SETTINGS:
        if (value := os.environ.get(_variable(name))) and not options_of([f"--{name.replace('_', '-')}"]):
            yield name, value


def _variable(name: str) -> str:
    return f"CURTSY_{name.upper()}"


def _in_file() -> set[str]:
    """The settings in the file of --config, or in this folder's curtsy.toml."""
    words = options_of(("--config",))
    try:
        return set(from_file(Path(words[-1].removeprefix("--config=")) if words else None))
    except SettingsError:
        return set()


def options_of(names: Iterable[str]) -> list[str]:
    """These options as they are written on this command line."""
    found: list[str] = []
    words = iter(sys.argv[1:])
    for word in words:
        name, equals, _ = word.partition("=")
        if name in names:
            found += [word] if equals else [word, next(words, "")]
    return found
