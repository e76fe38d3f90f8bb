"""Shells complete commands and options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def curtsy(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("curtsy")), *words]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("line", "words"),
    [("exp", {"export", "explain"}), ("crawl --max", {"--max-pages", "--max-depth"}), ("review rej", {"reject"})],
)
def test_words_are_completed(line: str, words: set[str]) -> None:
    given = {"COMP_WORDS": f"curtsy {line}", "COMP_CWORD": str(len(line.split())), "_CURTSY_COMPLETE": "complete_bash"}
    done = curtsy(**given)
    assert set(done.stdout.split()) == words, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell: str) -> None:
    assert "_CURTSY_COMPLETE" in curtsy("completion", shell).stdout
    assert curtsy("completion", "cmd").returncode == 2


def test_bash_accepts_the_script() -> None:
    script = curtsy("completion", "bash").stdout
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
