"""A message about an invalid setting names the variable or key, says what is wrong, and gives an example."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from curtsy.core.errors import SettingsError
from curtsy.core.settings import Settings
from curtsy.core.settings_errors import _EXAMPLES, _example
from curtsy.core.settings_loading import load

NAN = float("nan")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _refused(**given: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load(**given)
    return str(caught.value).removeprefix("Invalid settings (see docs/reference/settings.md): ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"keep_types": "x"}, "keep_types must be a list of texts, not 'x'; for example keep_types = "
                              '["text/html", "application/json"]'),
        ({"deny_hosts": "x"}, "deny_hosts must be a list of texts, not 'x'; for example deny_hosts = "
                              '["ads.example.com"]'),
        ({"deny_hosts": [5]}, "deny_hosts must be a list of texts, not one with 5; for example deny_hosts = "
                              '["ads.example.com"]'),
        ({"hosts": {"a": 1}}, 'hosts."a" must be a table that can have delay_s, per_host, headers, proxy_pool; '
                              'for example hosts."example.com" = { delay_s = 5 }'),
        ({"hosts": {"a.test": {"delay_s": "x"}}}, 'hosts."a.test".delay_s must be a number of at least 0, not \'x\'; '
                                                  'for example hosts."example.com" = { delay_s = 5 }'),
        ({"data_dir": 5}, 'data_dir must be a path, not 5; for example data_dir = "/srv/curtsy"'),
        ({"agent": "a b"}, "agent must be one word of letters, '-' and '_', not 'a b'; for example agent = \"curtsy\""),
        ({"delay_s": NAN}, "delay_s must be a number of at least 0 and at most 86400, not nan; for example "
                           "delay_s = 1.0"),
        ({"max_redirects": 2.5}, "max_redirects must be a whole number of at least 0 and at most 20, not 2.5; for "
                                 "example max_redirects = 10"),
        ({"renderer": "x"}, "renderer must be one of playwright, crawl4ai, not 'x'; for example "
                            'renderer = "playwright"'),
    ],
)  # fmt: skip
def test_a_value_that_is_wrong_is_reported_with_its_key_and_an_example(given: dict[str, Any], said: str) -> None:
    assert _refused(**given) == said


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DNS_SERVERS", "127.0.0.1", "CURTSY_DNS_SERVERS must be a list of texts as JSON, not '127.0.0.1'; for example "
                                     "CURTSY_DNS_SERVERS='[\"9.9.9.9\", \"[2620:fe::fe]:53\"]'"),
        ("DELAY_S", "x", "CURTSY_DELAY_S must be a number of at least 0 and at most 86400, not 'x'; for example "
                         "CURTSY_DELAY_S=1.0"),
        ("ALLOW_PRIVATE", "foo", "CURTSY_ALLOW_PRIVATE: 'foo' does not appear to be an IPv4 or IPv6 network; for "
                                 "example CURTSY_ALLOW_PRIVATE=10.0.0.0/8"),
    ],
)  # fmt: skip
def test_a_variable_that_is_wrong_is_reported_by_its_name(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"CURTSY_{name}", value)
    assert _refused() == said


def test_a_boolean_is_no_number() -> None:
    assert _refused(delay_s=True).startswith("delay_s must be a number of at least 0 and at most 86400, not true;")
    assert _refused(max_redirects=False).startswith("max_redirects must be a whole number")
    rule = {"a.test": {"per_host": True}}
    assert _refused(hosts=rule).startswith('hosts."a.test".per_host must be a whole number of at least 1, not true;')
    assert load(render_screenshots=True).render_screenshots is True


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOSTS", '{"a.test": {"headers": "sekrit"}}'),
        ("HOSTS", "sekrit"),
        ("PROXIES", "http://me:sekrit@a.test"),
        ("WEBHOOK_SECRET", "sekrit"),
    ],
)
def test_a_message_has_no_secret(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"CURTSY_{name}", value)
    said = _refused()
    assert f"CURTSY_{name}" in said
    assert "sekrit" not in said


def test_every_example_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _EXAMPLES.keys() - {"ca_file"}:
        load(**tomllib.loads(_example(name, of_environment=False).removeprefix("; for example ")))
        variable, _, value = _example(name, of_environment=True).removeprefix("; for example ").partition("=")
        monkeypatch.setenv(variable, value.strip("'"))
        load()
        monkeypatch.delenv(variable)


def test_no_number_can_be_nan() -> None:
    numbers = [name for name, field in Settings.model_fields.items() if "float" in str(field.annotation)]
    assert len(numbers) > 50
    for name in numbers:
        assert f"{name} must be a number of " in _refused(**{name: NAN})
