"""How the command starts: fast, and with errors that tell what to do."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HEAVY = ("sqlalchemy", "pycurl", "redis", "selectolax", "pydantic_settings", "uvloop", "pyarrow", "alembic")


def curtsy(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "curtsy.cli", *words], cwd=cwd, text=True, capture_output=True, timeout=60, check=False
    )


def test_help_starts_fast(tmp_path: Path) -> None:
    def once() -> float:
        begun = time.perf_counter()
        assert curtsy("--help", cwd=tmp_path).returncode == 0
        return time.perf_counter() - begun

    # The best of some: other tests may be using the cores.
    assert min(once() for _ in range(5)) < 0.3


def test_reading_the_command_line_imports_nothing_heavy(tmp_path: Path) -> None:
    code = f"import curtsy.cli.app, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_wrong_option_is_a_usage_error(tmp_path: Path) -> None:
    result = curtsy("crawl", "--no-such-option", cwd=tmp_path)
    assert result.returncode == 2
    assert "--no-such-option" in result.stderr
    assert result.stdout == ""


def test_a_wrong_setting_is_a_usage_error_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "curtsy.toml").write_text("delay_s = 'soon'\n")
    result = curtsy("crawl", "https://a.test/", cwd=tmp_path)
    assert result.returncode == 2
    assert "delay_s" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_broken_chain_of_time_limits_says_what_to_change(tmp_path: Path) -> None:
    (tmp_path / "curtsy.toml").write_text("fetch_timeout_s = 60\n")
    result = curtsy("crawl", "https://a.test/", cwd=tmp_path)
    assert result.returncode == 2
    assert "raise slot_s" in result.stderr


def test_a_crawl_without_urls_says_what_to_give(tmp_path: Path) -> None:
    result = curtsy("crawl", cwd=tmp_path)
    assert result.returncode == 2
    assert "--from FILE" in result.stderr


def test_a_bad_pattern_or_scope_is_refused(tmp_path: Path) -> None:
    assert curtsy("crawl", "https://a.test/", "--scope", "planet", cwd=tmp_path).returncode == 2
    assert curtsy("crawl", "https://a.test/", "--render", "always", cwd=tmp_path).returncode == 2
