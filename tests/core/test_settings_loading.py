"""Where settings come from: deprecated names, and values in files."""

from __future__ import annotations

from pathlib import Path

import pycares
import pytest

from curtsy.client.http import key_from_environment
from curtsy.core.errors import SettingsError
from curtsy.core.settings_loading import load, load_with_notes, unknown_variables

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
    assert unknown_variables(["CURTSY_WORKER_SEATS"]) == []
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


def test_a_setting_can_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("webhook_secret", "0123456789abcdef\n"), ("store_url", "sqlite:///x"), ("delay_s", "2.5\n"),
                        ("hosts", '{"a.test": {"delay_s": 5}}')):  # fmt: skip
        (tmp_path / name).write_text(value)
        monkeypatch.setenv(f"CURTSY_{name.upper()}_FILE", str(tmp_path / name))
    (tmp_path / "curtsy.toml").write_text("delay_s = 1\n")
    settings = load()
    assert (settings.webhook_secret, settings.store_url) == ("0123456789abcdef", "sqlite:///x")
    assert (settings.delay_s, settings.hosts["a.test"].delay_s) == (2.5, 5)
    assert load(delay_s=3).delay_s == 3
    assert unknown_variables(["CURTSY_WEBHOOK_SECRET_FILE", "CURTSY_API_KEY_FILE", "CURTSY_CA_FILE"]) == []
    assert len(unknown_variables(["CURTSY_NONSENSE_FILE"])) == 1


def test_a_setting_whose_own_name_ends_with_file_is_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    monkeypatch.setenv("CURTSY_CA_FILE", str(tmp_path / "ca.pem"))
    assert load().ca_file == tmp_path / "ca.pem"


def test_a_secret_in_a_variable_and_in_a_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("0123456789abcdef")
    monkeypatch.setenv("CURTSY_WEBHOOK_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("CURTSY_WEBHOOK_SECRET", "0123456789abcdef")
    with pytest.raises(SettingsError, match="Both CURTSY_WEBHOOK_SECRET and CURTSY_WEBHOOK_SECRET_FILE"):
        load()
    monkeypatch.delenv("CURTSY_WEBHOOK_SECRET")
    (tmp_path / "secret").unlink()
    with pytest.raises(SettingsError, match="cannot be read"):
        load()


def test_the_key_of_a_client_can_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("curtsy_key\n")
    monkeypatch.delenv("CURTSY_API_KEY", raising=False)
    monkeypatch.setenv("CURTSY_API_KEY_FILE", str(tmp_path / "key"))
    assert key_from_environment() == "curtsy_key"


def test_a_file_without_certificates_is_refused(tmp_path: Path) -> None:
    said = (
        r"ca_file: 'nofile' cannot be read: No such file or directory\. Name a PEM file; for example ca_file = \"/etc"
    )
    with pytest.raises(SettingsError, match=said):
        load(ca_file="nofile")
    with pytest.raises(SettingsError, match="cannot be read: Is a directory"):
        load(ca_file=tmp_path)
    (tmp_path / "ca.pem").write_text("none\n")
    with pytest.raises(SettingsError, match="has no certificate"):
        load(ca_file=tmp_path / "ca.pem")


@pytest.mark.parametrize("server", ["foo", "dns.test:53", "127.0.0.1:0", "127.0.0.1:65536", "[::1]53", "[::1", ""])
def test_a_dns_server_that_is_no_address_is_refused(server: str) -> None:
    with pytest.raises(SettingsError, match=r"is not the address of a DNS server; for example dns_servers = \["):
        load(dns_servers=["9.9.9.9", server])


def test_addresses_of_dns_servers_are_accepted() -> None:
    servers = ("9.9.9.9", "127.0.0.1:5353", "::1", "[::1]", "[::1]:53", "fe80::1%eth0")
    assert load(dns_servers=servers).dns_servers == servers
    pycares.Channel(servers=servers).close()
