"""A crawl that needs the local model is refused before its first request if the model is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

import curtsy.api as curtsy
from curtsy.cli import main
from curtsy.core.errors import MissingPart
from curtsy.services import local_model

START = "http://127.0.0.1:9/"


@pytest.fixture(autouse=True)
def not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_model, "find_spec", lambda _: None)
    monkeypatch.chdir(tmp_path)


def _command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int | str | None:
    monkeypatch.setattr("sys.argv", ["curtsy", "crawl", START, "--allow-private", "127.0.0.0/8", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_the_command_refuses_and_creates_no_crawl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert _command(monkeypatch, "--schema", "organization", "--llm", "local") == 4
    assert "The local model needs the package xllamacpp: pip install 'curtsy[local-llm]'" in capsys.readouterr().err
    assert not (tmp_path / ".curtsy" / "curtsy.sqlite").exists()


def test_python_refuses() -> None:
    with pytest.raises(MissingPart, match="xllamacpp"):
        curtsy.crawl(START, schema="organization", llm="local", allow_private=("127.0.0.0/8",))


def test_a_schema_that_a_function_makes_needs_no_model() -> None:
    assert curtsy.crawl(START, schema="page", llm="local", allow_private=("127.0.0.0/8",))
