"""Deprecated names of settings work for one version, with a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from curtsy.core.settings_loading import load, load_with_notes, strays

OF_A_FILE = "The setting worker_seats is deprecated and will be removed in the next version. Use worker_processes."
OF_THE_ENVIRONMENT = (
    "The variable CURTSY_WORKER_SEATS is deprecated and will be removed in the next version. "
    "Use CURTSY_WORKER_PROCESSES."
)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_deprecated_name_in_a_file_works_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "curtsy.toml").write_text("worker_seats = 3\n")
    with pytest.warns(DeprecationWarning, match=OF_A_FILE):
        assert load().worker_processes == 3


def test_a_deprecated_variable_works_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURTSY_WORKER_SEATS", "4")
    assert strays(["CURTSY_WORKER_SEATS"]) == []
    with pytest.warns(DeprecationWarning, match=OF_THE_ENVIRONMENT):
        assert load().worker_processes == 4


def test_a_deprecated_argument_works_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match=OF_A_FILE):
        assert load(worker_seats=5).worker_processes == 5


def test_the_new_name_wins_over_the_deprecated_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "curtsy.toml").write_text("worker_seats = 3\nworker_processes = 6\n")
    with pytest.warns(DeprecationWarning, match=OF_A_FILE):
        assert load().worker_processes == 6
    monkeypatch.setenv("CURTSY_WORKER_SEATS", "4")
    monkeypatch.setenv("CURTSY_WORKER_PROCESSES", "7")
    with pytest.warns(DeprecationWarning, match="worker_seats|WORKER_SEATS"):
        assert load().worker_processes == 7


def test_warnings_can_be_passed_to_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURTSY_WORKER_SEATS", "4")
    notes: list[str] = []
    assert load_with_notes(notes.append).worker_processes == 4
    assert notes == [OF_THE_ENVIRONMENT]
