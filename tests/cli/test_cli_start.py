"""How the command starts: fast, and with errors that tell what to do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from curtsy.cli import crawl_options
from curtsy.core import settings_errors
from curtsy.core.errors import SettingsError
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load

HEAVY = ("sqlalchemy", "pycurl", "redis", "selectolax", "pydantic_settings", "uvloop", "pyarrow")


def curtsy(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "curtsy.cli", *words], cwd=cwd, text=True, capture_output=True, timeout=60, check=False
    )


def test_reading_the_command_line_imports_nothing_heavy(tmp_path: Path) -> None:
    code = f"import curtsy.cli.app, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True, check=True)
    assert found.stdout.strip() == "[]"


def test_garbage_is_collected_once_a_command_is_imported(tmp_path: Path) -> None:
    code = (
        "import gc; gc.disable(); from curtsy.cli.app import app; app.commands['status'].load(); "
        "print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True, check=True)
    assert found.stdout.split() == ["True", "True"]


def test_a_wrong_option_is_a_usage_error(tmp_path: Path) -> None:
    result = curtsy("crawl", "--no-such-option", cwd=tmp_path)
    assert result.returncode == 2
    assert "--no-such-option" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("crawl", "https://a.test/", "--delay", "soon"), "--delay"),
        (("crawl", "--delay"), "--delay"),
        (("crawl", "--no-such-option"), "--no-such-option"),
        (("failures", "list", "--limit", "0"), "--limit"),
        (("explain",), "URL|HOST"),
        (("status", "one", "two"), "two"),
        (("no-such-command",), "no-such-command"),
    ],
)
def test_what_cannot_be_read_is_reported_in_one_line_that_says_where_to_look(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    result = curtsy(*words, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert said in result.stderr
    assert "--help` for the options" in result.stderr


def test_a_group_without_a_command_shows_its_help(tmp_path: Path) -> None:
    result = curtsy("hosts", cwd=tmp_path)
    assert result.returncode == 2
    assert "unblock" in result.stdout + result.stderr


def test_a_variable_that_is_no_setting_is_reported_and_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURTSY_DELAY", "3")
    monkeypatch.setenv("CURTSY_HOSTS__X", "{}")
    result = curtsy("status", cwd=tmp_path)
    warned = [line for line in result.stderr.splitlines() if "CURTSY_" in line]
    assert warned == ["curtsy: There is no setting CURTSY_DELAY (it is ignored), perhaps you mean CURTSY_DELAY_S."]


def test_a_deprecated_variable_works_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURTSY_WORKER_SEATS", "3")
    result = curtsy("status", cwd=tmp_path)
    warned = [line for line in result.stderr.splitlines() if "SEATS" in line]
    assert warned == [
        "curtsy: The variable CURTSY_WORKER_SEATS is deprecated and will be removed in the next version. "
        "Use CURTSY_WORKER_PROCESSES."
    ]


@pytest.mark.parametrize("words", [("status",), ("serve", "--port", "0"), ("worker",), ("beat",), ("doctor",)])
def test_a_settings_file_that_the_environment_names_and_is_not_there_is_reported(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURTSY_CONFIG", str(tmp_path / "none.toml"))
    result = curtsy(*words, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        f"curtsy: There is no settings file {tmp_path}/none.toml. The variable CURTSY_CONFIG names it: give it an "
        "existing TOML file."
    ]


def test_the_command_line_names_a_file_before_the_environment_and_that_before_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, delay_s in (("curtsy", 11), ("named", 12), ("given", 13)):
        (tmp_path / f"{name}.toml").write_text(f"delay_s = {delay_s}\n")
    kept = {"delay_s": 5.0}
    assert (load().delay_s, load(None, kept).delay_s) == (11, 5)
    monkeypatch.setenv("CURTSY_CONFIG", "named.toml")
    assert (load().delay_s, load(None, kept).delay_s) == (12, 12)
    assert load(Path("given.toml")).delay_s == 13
    monkeypatch.setenv("CURTSY_CONFIG", "tinyweb.toml")
    assert load().delay_s < 1
    monkeypatch.setenv("CURTSY_CONFIG", "")
    assert load().delay_s == 11


def test_a_setting_that_does_not_exist_is_reported_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "curtsy.toml").write_text("dlay_s = 1\n")
    result = curtsy("status", cwd=tmp_path)
    assert result.returncode == 2
    assert "there is no setting 'dlay_s', perhaps you mean delay_s" in result.stderr


def test_an_option_of_a_crawl_is_no_setting(tmp_path: Path) -> None:
    (tmp_path / "curtsy.toml").write_text("max_pages = 10\n")
    with pytest.raises(SettingsError, match="it is an option of each crawl, --max-pages of `curtsy crawl`"):
        load(tmp_path / "curtsy.toml")


def test_each_option_of_a_crawl_that_is_no_setting_is_named() -> None:
    options = {name for name in crawl_options._OPTIONS if name not in Settings.model_fields}
    assert set(settings_errors._CRAWL_OPTIONS) == options


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[hosts."a.test"]\ndelay = 5', "the rule of hosts for 'a.test' has no 'delay', perhaps you mean delay_s"),
        ('[hosts."a.test"]\nxyz = 5', "it can have delay_s, per_host, headers, proxy_pool"),
        ('user_agent = "Me\\r\\nX-Evil: 1"', "user_agent"),
        ('contact = "me@a.test\\nX: 1"', "contact"),
        ('[hosts."a.test".headers]\n"X\\r\\nY" = "1"', "not a header name"),
        ('[hosts."a.test".headers]\nX = "1\\r\\nY: 2"', "cannot be sent"),
        ('[hosts."a.test".headers]\nhost = "b.test"', "the header host cannot be set"),
        ('[hosts."a.test".headers]\n"Transfer-Encoding" = "chunked"', "cannot be set"),
        ('frontier_url = "foo://x"', "is not the URL of a server"),
        ('frontier_url = "127.0.0.1:6379"', "is not the URL of a server"),
        ('frontier_url = "redis://:secret@127.0.0.1:abc"', "'abc' in 'redis://:***@127.0.0.1:abc' is not a port"),
        ('store_url = "postgresql://nobody:pw@127.0.0.1:xx/x"', "nobody:***@127.0.0.1:xx/x' is not a port"),
    ],
)
def test_an_invalid_setting_is_reported_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "curtsy.toml").write_text(text + "\n")
    with pytest.raises(SettingsError, match=re.escape(said)) as error:
        load(tmp_path / "curtsy.toml")
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"frontier_url": "redis://user:p@ss:1@[::1]:6379/2"},
        {"frontier_url": "unix:///tmp/x:y.sock"},
        {"store_url": "postgresql://u:p@db.test:5432/x"},
        {"store_url": "sqlite:///a:b/c"},
        {"hosts": {"a.test.": {"headers": {"Authorization": "Bearer a b\tc"}}}},
    ],
)
def test_settings_that_can_be_are_taken(settings: dict[str, Any]) -> None:
    assert load(None, **settings)


def test_a_url_that_cannot_be_in_the_environment_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURTSY_STORE_URL", "postgresql://nobody@127.0.0.1:xx/x")
    result = curtsy("status", cwd=tmp_path)
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)


def test_an_invalid_object_store_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURTSY_SEGMENTS_URL", "ftp://x")
    result = curtsy("crawl", "https://a.test/", cwd=tmp_path)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "s3://bucket" in result.stderr
    told = curtsy("doctor", cwd=tmp_path)
    assert told.returncode == 4
    assert "FAIL segments" in told.stdout
    assert not (tmp_path / ".curtsy" / "valkey.sock").exists()


#: the imports on the way to a crawl, in their order: the first, one in the middle, the last
@pytest.mark.parametrize("module", ["curtsy.cli.app", "curtsy.core.settings", "curtsy.cli.run_crawl"])
def test_ctrl_c_before_a_crawl_has_begun_says_so_and_exits_with_3(module: str, tmp_path: Path) -> None:
    """The signal comes exactly while `module` is being imported."""
    code = f"""
import os, signal, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Press())
sys.argv = ["curtsy", "crawl", "http://a.test/"]
from curtsy.cli import main
main()
"""
    run = [sys.executable, "-c", code]
    result = subprocess.run(run, cwd=tmp_path, text=True, capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (3, "Interrupted; no crawl was started.\n")
    assert not (tmp_path / ".curtsy").exists()


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
    assert curtsy("crawl", "https://a.test/", "--render", "sometimes", cwd=tmp_path).returncode == 2
    result = curtsy("crawl", "https://a.test/", "--per-host", "0", cwd=tmp_path)
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "Invalid value 0 for --per-host" in result.stderr


def test_a_crawl_that_needs_a_browser_is_not_begun_without_one(tmp_path: Path) -> None:
    (tmp_path / "curtsy.toml").write_text('chromium = "no-such-program"\n')
    result = curtsy("crawl", "https://a.test/", "--render", "auto", cwd=tmp_path)
    assert result.returncode == 4
    assert "Install Chromium" in result.stderr
    assert not (tmp_path / ".curtsy" / "curtsy.sqlite").exists(), "nothing was stored"
