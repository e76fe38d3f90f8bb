"""The tutorial as it is written: its commands run, and they print what it shows."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

from curtsy.tinyweb import TinyWeb

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
#: a command, and the output that follows it
_STEP = re.compile(r"((?:^    [^\n]+\n)+)(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}(?:-[0-9a-f]{4}){0,2}(?:-[0-9a-f]{12})?")
#: runs the command as the foreground job of the terminal at its standard input, so that Ctrl-C reaches it
_LOGIN = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp("sh", ["sh", "-c", "trap : INT; " + sys.argv[1]])
"""
COMMANDS = ["init", "crawl", "crawl", "failures", "audit", "explain", "show", "review", "review", "review", "export",
            "bundle", "crawl", "changes"]  # fmt: skip


def steps() -> list[tuple[str, str]]:
    text = TUTORIAL.read_text("utf-8").partition("## 3. ")[2].partition("## Next steps")[0]
    return [(re.sub(r"\\\n +", "", command).strip(), shown) for command, shown in _STEP.findall(text)]


class Reader:
    """A reader of the tutorial, with a terminal of 80 columns."""

    def __init__(self, home: Path, web: TinyWeb) -> None:
        self.home, self.web, self.folder = home, web, home
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "HOME": str(home), "TERM": "dumb", "COLUMNS": "80"}

    def follow(self, command: str, shown: str) -> None:
        line = command.replace("127.0.0.1:8000", f"127.0.0.1:{self.web.port}").replace("--delay 0.5", "--delay 0.1")
        line = re.sub("(?<=review show )1", lambda _: self._record("published", "org-0005"), line)
        line = re.sub("(?<=review reject )2", lambda _: self._record("held", "org-0004"), line)
        stops = "is interrupted" in shown
        code, printed = self._run(line, lambda: stops and len(self.web.requests()) > 9)
        assert code == (3 if stops else 1 if " crawl " in line else 0), f"{line}\n{printed}"
        rest = comparable(printed.replace(str(self.home), "/home/you"))
        for part in map(comparable, ["is interrupted"] if stops else shown.split("...\n")):
            assert part in rest, f"{line}\n{printed}"
            rest = rest[rest.index(part) :]

    def _record(self, status: str, host: str) -> str:
        """The number of a record: it depends on which site was read first."""
        command = ["curtsy", "records", "--status", status]
        lines = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=True)
        return next(str(record["id"]) for record in map(json.loads, lines.stdout.splitlines()) if host in record["url"])

    def _run(self, line: str, interrupt: Callable[[], bool]) -> tuple[int, str]:
        """Exit code and output; Ctrl-C as soon as `interrupt` is true."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        child = subprocess.Popen(
            [sys.executable, "-c", _LOGIN, line], cwd=self.folder, env=self.env, stdin=theirs, stdout=theirs,
            stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        output, pressed = b"", False
        while True:
            if not pressed and interrupt():
                pressed = bool(os.write(ours, b"\x03"))
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    output += os.read(ours, 1 << 16)
                except OSError:  # nobody has the terminal open any more
                    break
        os.close(ours)
        return child.wait(60), output.decode()


def comparable(text: str) -> str:
    """Without line breaks, ids and numbers, which differ from run to run."""
    return re.sub(r"\d+(?:[.,:-]\d+)*", "0", _ID.sub("ID", re.sub(r"\s+", "", text)))


def test_every_command_of_the_tutorial_prints_what_it_shows(tmp_path: Path) -> None:
    assert [command.split()[1] for command, _ in steps() if command.startswith("curtsy ")] == COMMANDS
    with TinyWeb.start(hosts=6, faults=("refused",), log=tmp_path / "access.log") as web:
        reader = Reader(tmp_path, web)
        for command, shown in steps():
            if command.startswith("cd "):
                reader.folder = tmp_path / command.removeprefix("cd ~/")
            else:
                reader.follow(command, shown)
    assert (reader.folder / "orgs.xlsx").exists()
    assert (reader.folder / "handover" / "report.html").exists()
