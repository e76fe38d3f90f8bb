"""Processes of `crawl --processes N` start before there is a crawl for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from curtsy.cli.run_crawl import Helpers
from curtsy.core.settings import Settings


def test_a_process_that_gets_no_crawl_ends_when_its_parent_sends_no_more(tmp_path: Path) -> None:
    helpers = Helpers(Settings(data_dir=tmp_path / "data"))
    helpers.start(2)
    asyncio.run(helpers.wait(30))
    assert not helpers.counted
    assert not (tmp_path / "data").exists(), "they opened nothing"
