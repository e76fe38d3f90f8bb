"""Going on with a crawl: what it was started with is found again, secrets are not; nothing is exported too early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_folder import CrawlFolder
from waiting import until

from curtsy.cli import next_commands
from curtsy.core.settings_loading import keep, load, missing
from curtsy.tinyweb import TinyWeb

SEED = "http://org-0000.tinyweb.test/"


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=1, pages=8, faults=False) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, web: TinyWeb) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, delay_s=0.3, agent="goose")
    yield made
    made.close()


def curtsy(folder: CrawlFolder, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A command as it is typed, with no option that it is not given."""
    return subprocess.run(
        [sys.executable, "-m", "curtsy.cli", *words],
        cwd=folder.path,
        env={**os.environ, **env},
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )


def interrupted(folder: CrawlFolder, *words: str) -> tuple[str, str, str]:
    """(id, standard output, standard error) of a crawl that was stopped after its first pages."""
    process = folder.start("crawl", SEED, *words)
    until(lambda: folder.has_pages(2))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    return folder.rows("SELECT id FROM crawls")[0][0], out, err


def stored(folder: CrawlFolder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(folder.rows("SELECT settings FROM crawls")[0][0])
    return found


def test_a_crawl_continues_with_what_it_was_started_with(folder: CrawlFolder, web: TinyWeb) -> None:
    id, _, err = interrupted(folder, "--resolve", web.resolve_rule)
    assert f"curtsy crawl --resume {id} --config {folder.config}" in err
    assert stored(folder)["settings"]["resolve"] == [web.resolve_rule]
    before = len(folder.pages())
    done = curtsy(folder, "crawl", "--resume", id, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "finished"
    assert len(folder.pages()) == 8 > before
    delays = {delay for (delay,) in folder.rows("SELECT delay_ms FROM requests")}
    assert delays == {300}
    assert stored(folder)["settings"]["agent"] == "goose"


def test_what_is_given_when_it_is_resumed_wins_and_is_kept(folder: CrawlFolder, web: TinyWeb) -> None:
    id, _, _ = interrupted(folder, "--resolve", web.resolve_rule)
    asked = len(folder.rows("SELECT 1 FROM requests"))
    done = curtsy(folder, "crawl", "--resume", id, "--delay", "0.4", "--json", CURTSY_AGENT="swan")
    assert done.returncode == 0, done.stderr
    delays = [delay for (delay,) in folder.rows("SELECT delay_ms FROM requests ORDER BY start_ms")]
    assert delays[asked:]
    assert set(delays[asked:]) == {400}
    assert stored(folder)["settings"]["agent"] == "swan"


def test_what_decided_which_urls_a_crawl_has_cannot_be_changed(folder: CrawlFolder, web: TinyWeb) -> None:
    id, _, _ = interrupted(folder, "--resolve", web.resolve_rule)
    refused = curtsy(folder, "crawl", "--resume", id, "--scope", "any", "--max-depth", "1")
    assert refused.returncode == 2
    assert "--max-depth, --scope cannot be changed" in refused.stderr


def test_every_command_names_the_options_that_find_the_folder(folder: CrawlFolder, web: TinyWeb) -> None:
    id, _, _ = interrupted(folder, "--resolve", web.resolve_rule, "--data-dir", str(folder.data))
    place = f"--data-dir {folder.data}"
    assert f"curtsy crawl --resume {id} {place}\n" in curtsy(folder, "status", *place.split()).stdout
    waiting = folder.rows("SELECT url FROM urls WHERE state = 'open'")[0][0]
    assert f"curtsy crawl --resume {id} {place}\n" in curtsy(folder, "explain", waiting, *place.split()).stdout
    paused = curtsy(folder, "pause", *place.split())
    assert f"curtsy crawl --resume {id} {place}\n" in paused.stdout


def test_the_folder_of_an_interrupted_crawl_has_its_pages_and_is_continued(folder: CrawlFolder, web: TinyWeb) -> None:
    id, _, err = interrupted(folder, "--resolve", web.resolve_rule, "--out", "pages")
    committed = folder.rows("SELECT count(*) FROM pages")[0][0]
    assert len(list((folder.path / "pages").rglob("*.md"))) == committed < 8
    assert f"--resume {id} --config {folder.config}" in err
    done = curtsy(folder, "crawl", "--resume", id, "--out", "pages")
    assert done.returncode == 0, done.stderr
    assert len(list((folder.path / "pages").rglob("*.md"))) == 8


def test_secrets_are_not_stored_and_must_be_given_again(tmp_path: Path, web: TinyWeb) -> None:
    secret = {"org-0000.tinyweb.test": {"headers": {"Authorization": "Bearer hunter2"}}}
    folder = CrawlFolder(tmp_path, delay_s=0.3, hosts=secret, resolve=[web.resolve_rule])
    try:
        id, _, err = interrupted(folder)
        assert "what is not stored" not in err  # the hint names the file that has them
        assert "hunter2" not in err
        assert stored(folder)["withheld"] == ["hosts"]
        for file in folder.data.glob("curtsy.sqlite*"):
            assert b"hunter2" not in file.read_bytes()
        assert (
            f"--resume {id}\nGive these settings again; they are not stored: hosts.\n"
            in curtsy(folder, "status").stdout
        )
        refused = curtsy(folder, "crawl", "--resume", id)
        assert refused.returncode == 2
        assert "was made with hosts. They may hold secrets" in refused.stderr
        assert curtsy(folder, "crawl", "--resume", id, "--config", "test.toml").returncode == 0
    finally:
        folder.close()


def test_a_hint_can_be_typed_where_the_program_is_not_on_the_path(folder: CrawlFolder, web: TinyWeb) -> None:
    id, _, _ = interrupted(folder, "--resolve", web.resolve_rule)
    plain = {"PATH": "/usr/bin:/bin", "CURTSY_DATA_DIR": str(folder.data)}
    (said,) = [line for line in curtsy(folder, "status", **plain).stdout.splitlines() if line.startswith("Resume with")]
    typed = said.partition(": ")[2]
    assert typed.startswith(f"CURTSY_DATA_DIR={folder.data} /")
    bare = {name: value for name, value in os.environ.items() if name != "CURTSY_DATA_DIR"} | {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(typed + " --json", shell=True, cwd="/", env=bare, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id"] == id


@pytest.mark.parametrize(
    ("config", "variables", "said"),
    [
        ("", {}, ["Give these settings again; they are not stored: hosts, proxies."]),
        ("[hosts.x]", {}, ["Give these settings again; they are not stored: proxies."]),
        ("[hosts.x]", {"CURTSY_PROXIES": "{}"}, ["It needs CURTSY_PROXIES in the environment."]),
        ("proxies = {}\n[hosts.x]", {"CURTSY_STORE_URL": "postgresql://me:pw@db/x"},
         ["It needs CURTSY_STORE_URL in the environment."]),
        ("proxies = {}\n[hosts.x]", {}, []),
    ],
)  # fmt: skip
def test_a_hint_says_on_lines_of_their_own_what_is_to_be_given_again(
    config: str, variables: dict[str, str], said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.toml").write_text(config)
    monkeypatch.setattr(sys, "argv", ["curtsy", "status", "--config", str(tmp_path / "x.toml")])
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    first, *others = next_commands.resume("abc", {"withheld": ["hosts", "proxies"]}).splitlines()
    assert first.endswith(f"curtsy crawl --resume abc --config {tmp_path / 'x.toml'}")
    assert "pw" not in first
    assert others == said


def test_a_hint_names_the_settings_file_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.toml").write_text("[hosts.x]")
    monkeypatch.setenv("CURTSY_CONFIG", str(tmp_path / "x.toml"))
    monkeypatch.setattr(sys, "argv", ["curtsy", "status"])
    said = next_commands.resume("abc", {"withheld": ["hosts"]})
    assert said.startswith(f"CURTSY_CONFIG={tmp_path / 'x.toml'} ")
    assert "Give again" not in said
    monkeypatch.setattr(sys, "argv", ["curtsy", "status", "--config=y.toml"])
    assert "CURTSY_CONFIG" not in next_commands.resume("abc")


def test_the_program_is_named_as_it_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine, other = tmp_path / ".venv" / "bin" / "curtsy", tmp_path / "elsewhere" / "curtsy"
    for path in (mine, other):
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [".venv/bin/curtsy", "status"])
    for path in ("", str(other.parent)):
        monkeypatch.setenv("PATH", path)
        assert next_commands.program() == ".venv/bin/curtsy"
    monkeypatch.setenv("PATH", str(mine.parent))
    assert next_commands.program() == "curtsy"


def test_what_may_hold_secrets_is_only_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CURTSY_GUESS_SITEMAP")
    monkeypatch.chdir(tmp_path)
    given = {
        "proxies": {"default": ("http://me:pw@127.0.0.1:1",)},
        "frontier_url": "redis://:pw@127.0.0.1/2",
        "segments_url": "s3://bucket/x",
        "store_url": "postgresql://me:pw@db/x",
        "hosts": {"a.test": {"delay_s": 3}},
        "delay_s": 2.0,
    }
    kept = keep(load(None, **given))
    assert kept["withheld"] == ["frontier_url", "proxies"]
    assert kept["settings"] == {"delay_s": 2.0, "hosts": {"a.test": {"delay_s": 3.0}}, "segments_url": "s3://bucket/x"}
    sentinels = keep(load(None, frontier_url="sentinel://a:1,b:2/s?sentinel_password=pw"))
    assert sentinels == {"settings": {}, "withheld": ["frontier_url"]}
    again = load(None, kept["settings"])
    assert (again.delay_s, again.hosts["a.test"].delay_s) == (2.0, 3.0)
    assert missing(kept, again) == ["frontier_url", "proxies"]
    assert missing(kept, load(None, kept["settings"], proxies={}, frontier_url="redis://x/2")) == []


def test_who_serves_crawls_is_not_stored_with_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CURTSY_GUESS_SITEMAP")
    monkeypatch.chdir(tmp_path)
    serving = {"webhook_secret": "0123456789abcdef", "broker_url": "redis://x/", "api_port": 80, "retain_pages_days": 9}
    assert keep(load(None, per_host=2, **serving)) == {"settings": {"per_host": 2}, "withheld": []}


def test_the_settings_of_a_crawl_stand_between_the_file_that_lies_there_and_what_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "curtsy.toml").write_text("delay_s = 1\nper_host = 1\n")
    (tmp_path / "mine.toml").write_text("delay_s = 3\n")
    kept = {"delay_s": 2, "no_longer_a_setting": True}
    assert load(None, kept).delay_s == 2
    assert load(Path("mine.toml"), kept).delay_s == 3
    assert load(None, kept, delay_s=4).delay_s == 4
    monkeypatch.setenv("CURTSY_DELAY_S", "5")
    assert load(Path("mine.toml"), kept).delay_s == 5
