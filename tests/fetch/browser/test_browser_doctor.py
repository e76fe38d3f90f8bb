"""`curtsy doctor` starts the browser, because one that is installed may still not start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rendered import browser_pids

from curtsy.cli.doctor import Check, _optional
from curtsy.core.settings import Settings
from curtsy.fetch.chromium import find


def browser(settings: Settings) -> Check:
    return next(check for check in _optional(settings) if check.what == "browser")


def test_doctor_tells_where_the_browser_is_and_that_it_starts() -> None:
    found = browser(Settings())
    assert found.ok is True
    assert found.found.startswith(f"{find(Settings())}, starts, ")
    assert not browser_pids(os.getpid())


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/sh\necho no display for it >&2; exit 1\n", "no display for it"),
        ("#!/bin/sh\nexit 0\n", "ended at once"),
    ],
)
def test_doctor_tells_why_a_browser_does_not_start(tmp_path: Path, script: str, said: str) -> None:
    program = tmp_path / "chromium"
    program.write_text(script)
    program.chmod(0o755)
    found = browser(Settings(chromium=str(program)))
    assert (found.ok, said in found.repair) == (False, True), found


def test_doctor_does_not_insist_on_a_browser(tmp_path: Path) -> None:
    found = browser(Settings(chromium=str(tmp_path / "nowhere")))
    assert found.ok is None
    assert "apt install chromium" in found.repair
