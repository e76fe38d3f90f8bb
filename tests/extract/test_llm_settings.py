"""What can be set about language models, and that keys stay where they belong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curtsy.core import settings as module
from curtsy.core.errors import SettingsError
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import keep, load, missing

SERVER = {"llm_url": "http://127.0.0.1:11434/v1", "llm_model": "m"}


@pytest.mark.parametrize(
    ("given", "kind", "name"),
    [
        ({}, "none", ""),
        (SERVER, "endpoint", "m"),
        ({"llm": "none", **SERVER}, "none", "m"),
        ({"llm": "local"}, "local", module.LOCAL_MODEL),
        ({"llm": "local", **SERVER}, "local", module.LOCAL_MODEL),
    ],
)
def test_an_address_is_enough_to_say_who_is_asked(given: dict[str, Any], kind: str, name: str) -> None:
    settings = Settings(**given)
    assert (settings.llm_kind, settings.llm_name) == (kind, name)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"llm": "endpoint"}, "llm_model"),
        ({"llm_url": "http://x.example/v1"}, "llm_model"),
        ({"llm_url": "x.example/v1", "llm_model": "m"}, "is not the address"),
        ({"llm_url": "ftp://x.example", "llm_model": "m"}, "is not the address"),
        ({"llm_url": "https://user:sekrit@x.example/v1", "llm_model": "m"}, "llm_api_key"),
        ({**SERVER, "llm_api_key": "sekrit\nX-Other: 1"}, "cannot be sent"),
        ({**SERVER, "llm_timeout_s": 500}, "stage_lease_s"),
    ],
)
def test_invalid_input_is_reported_at_once_and_without_the_key(
    given: dict[str, Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=told) as caught:
        load(**given)
    assert "sekrit" not in str(caught.value)


def test_the_key_is_not_shown_and_not_kept_with_a_crawl_but_asked_for_again() -> None:
    settings = Settings(**SERVER, llm_api_key="sekrit")
    assert "sekrit" not in repr(settings) + str(settings)
    kept = keep(settings)
    assert "sekrit" not in str(kept)
    assert kept["withheld"] == ["llm_api_key"]
    assert missing(kept, Settings(**SERVER)) == ["llm_api_key"]
    assert kept["settings"]["llm_model"] == "m"
