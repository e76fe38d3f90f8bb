"""Runs the tutorial, or another page, as it is written: every block of commands, in order, in a shell.

A block of commands is indented by four spaces, or fenced as `sh`. The text around it says how it is run:

- `second terminal` before it: in the background, to the end of the tutorial;
- `Press Ctrl-C` before it: until it has stored a page, then it is interrupted;
- `The exit code is N` between it and the next block: it must end with N instead of 0. A crawl that names dead letters
  may also end with 1, as long as it has pages.

A block after the line `<!-- not run: reason -->` is not run; this is for commands that need a public address. `make`
is not run either, because it installs. A block fenced as `text` shows what the commands before it print: they must
print the first word of each of its lines, except `...`. Numbers, ids and times may differ, and where a line is wrapped.
"""

from __future__ import annotations

import re
import signal
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from tests.newcomer.terminal import Run
from tests.support.frontier_servers import free_ports
from tests.support.waiting import until

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
#: the port of the tiny web in the tutorial; here it may be in use
PORT = "8000"
LIMIT_S = 240.0
_EXIT_CODE = re.compile(r"[Tt]he exit code is (\d)")
_NUMBER_OR_ID = re.compile(r"\d[\w,.:-]*")
_RECORD = re.compile(r"(curtsy review (?:show|approve|reject|correct)) \d+")
#: the number of a record in the list of those that wait for a review
_LISTED = re.compile(r"^ +(\d+) +organization", re.MULTILINE)
_NOT_RUN = "<!-- not run: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A block of commands."""

    heading: str
    script: str
    before: str
    after: str
    shown: tuple[str, ...]

    @property
    def is_run(self) -> bool:
        return _NOT_RUN not in self.before

    @property
    def in_background(self) -> bool:
        return "second terminal" in self.before.replace("*", "")

    @property
    def is_interrupted(self) -> bool:
        return "Press Ctrl-C" in self.before

    @property
    def code(self) -> int | None:
        """The exit code; an interrupted command may have any."""
        if self.is_interrupted:
            return None
        said = _EXIT_CODE.search(self.after)
        return int(said[1]) if said else 0


@dataclass(frozen=True, slots=True)
class Took:
    step: Step
    code: int
    printed: str

    @property
    def problem(self) -> str | None:
        if self.step.code not in (None, self.code) and not self._has_dead_letters:
            return self._told(f"exit code {self.code}, not {self.step.code}")
        printed = {_masked(word) for word in self.printed.split()}
        missing = [line for line in self.step.shown if line.strip(" .") and _masked(line.split()[0]) not in printed]
        return self._told("it does not print: " + "\n".join(missing)) if missing else None

    @property
    def _has_dead_letters(self) -> bool:
        return self.code == 1 and "Show dead letters: " in self.printed and "No page was fetched" not in self.printed

    def _told(self, what: str) -> str:
        return f"{self.step.heading}\n{self.step.script}\n{what}\n--- it printed:\n{self.printed}"


def _masked(word: str) -> str:
    return _NUMBER_OR_ID.sub("N", word).rstrip("─")


def steps(text: str) -> list[Step]:
    blocks = list(_blocks(text))
    found: list[Step] = []
    heading = before = ""
    for at, (kind, block) in enumerate(blocks):
        if kind == "heading":
            heading, before = block, ""
        elif kind == "words":
            before = block
        elif kind == "sh":
            rest = blocks[at + 1 :]
            end = next((n for n, (kind, _) in enumerate(rest) if kind in ("sh", "heading")), len(rest))
            shown = tuple(line for kind, block in rest[:end] if kind == "text" for line in block.splitlines())
            after = " ".join(block for kind, block in rest[:end] if kind == "words")
            found.append(Step(heading=heading, script=block, before=before, after=after, shown=shown))
            before = ""
    return found


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """(kind, text) of headings, paragraphs (`words`), commands (`sh`) and outputs (`text`)."""
    fenced = re.split(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    for at in range(0, len(fenced), 3):
        yield from _unfenced(fenced[at])
        if at + 2 < len(fenced):
            yield fenced[at + 1], fenced[at + 2]


def _unfenced(text: str) -> Iterator[tuple[str, str]]:
    for block in re.split(r"\n{2,}", text.strip("\n")):
        if block.startswith("    "):
            yield "sh", re.sub(r"^    ", "", block, flags=re.MULTILINE)
        elif block:
            yield "heading" if block.startswith("#") else "words", " ".join(block.split())


class Shell:
    """Runs blocks one after another, each in the folder where the one before it ended."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.home, self.settings = folder, settings
        self.repository = folder / "curtsy"
        self.repository.mkdir(exist_ok=True)
        (self.repository / ".venv").symlink_to(sys.prefix)
        self.here = self.repository
        self.port = str(free_ports(1)[0])
        #: the first record of the newest list
        self.held: str | None = None

    def start(self, step: Step) -> Run:
        script = "\n".join(line for line in step.script.splitlines() if not line.startswith("make "))
        script = script.replace(PORT, self.port)
        if self.held is not None:
            script = _RECORD.sub(rf"\1 {self.held}", script)
        words = ["bash", "-ec", f"trap 'pwd > {self.home}/folder' EXIT\n{script}"]
        return Run(
            words, self.repository if step.in_background else self.here, {**self.settings, "HOME": str(self.home)}
        )

    def run(self, step: Step) -> Took:
        process = self.start(step)
        try:
            if step.is_interrupted:
                until(lambda: self.pages > 0 or process.process.poll() is not None)
                process.signal(signal.SIGINT)
            code = process.wait(LIMIT_S)
        finally:
            process.end()
        self.here = Path((self.home / "folder").read_text().strip())
        if listed := _LISTED.search(process.out):
            self.held = listed[1]
        return Took(step, code, f"{process.out}\n{process.err}")

    @property
    def pages(self) -> int:
        try:
            with closing(sqlite3.connect(f"file:{self.here}/.curtsy/curtsy.sqlite?mode=ro", uri=True)) as store:
                return int(store.execute("SELECT count(*) FROM pages").fetchone()[0])
        except sqlite3.OperationalError:  # it is not there yet, or it is busy
            return 0


def run(folder: Path, page: Path = TUTORIAL, settings: Mapping[str, str] | None = None) -> Iterator[Took]:
    """Run a page in the folder `curtsy`; what runs in the background comes last."""
    shell = Shell(folder, settings or {})
    behind: list[tuple[Step, Run]] = []
    with ExitStack() as stack:
        for step in steps(page.read_text("utf-8")):
            if not step.is_run:
                continue
            if step.in_background:
                behind.append((step, shell.start(step)))
                stack.callback(behind[-1][1].end)
                until(lambda: bool(behind[-1][1].out))
            else:
                yield shell.run(step)
        for step, process in behind:
            process.signal(signal.SIGINT)
            yield Took(step, process.wait(LIMIT_S), process.out)
