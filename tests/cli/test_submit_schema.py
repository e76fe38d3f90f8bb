"""A schema that is sent to an API: names as they are, files and models as JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curtsy.client.remote import sendable_schema as _sent
from curtsy.core.errors import UsageError
from curtsy.grounding import schema

SHOP = {"title": "Shop", "type": "object", "properties": {"name": {"type": "string", "x-curtsy": {"css": "h1"}}}}


def test_a_name_is_for_the_server_to_know() -> None:
    assert _sent("organization") == "organization"


def test_a_file_goes_there_with_its_hints(tmp_path: Path) -> None:
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(SHOP))
    sent = _sent(str(path))
    assert isinstance(sent, dict)
    there = schema.inline(sent)
    assert [leaf.path for leaf in there.leaves] == ["/name"]
    assert there.selectors == schema.load(str(path)).selectors


def test_hints_beside_a_file_cannot_be_sent(tmp_path: Path) -> None:
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(SHOP))
    path.with_suffix(".toml").write_text('per = "site"\n')
    with pytest.raises(UsageError, match="x-curtsy"):
        _sent(str(path))
