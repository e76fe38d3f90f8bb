"""The newcomer's job in its short form. What each command prints is in golden/; `WRITE_GOLDEN=1` writes it anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from chromium import find

from tests.newcomer.job import Ran, Size, do, open_report

GOLDEN = Path(__file__).parent / "golden"
SIZE = Size(organizations=9, dead=1, untrusted=1, slow=1, pages=8)
#: shorter than the defaults, so that the test does not wait
SHORT = {"CURTSY_DELAY_S": "0.05", "CURTSY_NEW_HOST_PATIENCE_S": "3"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Ran]]:
    folder = tmp_path_factory.mktemp("newcomer")
    return folder, dict(do(folder, SIZE, SHORT))


def test_every_command_prints_what_it_printed_before(ran: tuple[Path, dict[str, Ran]]) -> None:
    found = {name: one.golden for name, one in ran[1].items()}
    if os.environ.get("WRITE_GOLDEN") == "1":
        for name, text in found.items():
            (GOLDEN / f"{name}.txt").write_text(text, "utf-8")
    expected = {path.stem: path.read_text("utf-8") for path in GOLDEN.glob("*.txt")}
    assert found.keys() == expected.keys()
    for name, text in found.items():
        assert text == expected[name], name


def test_tables_and_summaries_fit_into_80_columns(ran: tuple[Path, dict[str, Ran]]) -> None:
    for name, one in ran[1].items():
        assert one.wide == [], name


def test_a_second_crawl_shows_what_changed_in_texts_and_values(ran: tuple[Path, dict[str, Ran]]) -> None:
    said = ran[1]["changes"].out
    assert re.search(r"^  - Our mission is to ", said, re.MULTILINE)
    assert re.search(r"^  \+ Our mission is to ", said, re.MULTILINE)
    assert re.search(r"/founded_year +\d{4} +\d{4}$", said, re.MULTILINE)


def test_explanations_name_the_cause_and_the_remedy(ran: tuple[Path, dict[str, Ran]]) -> None:
    explained = {name: one.out for name, one in ran[1].items() if name.startswith("explain")}
    assert "Could not connect to server" in explained["explain-dead"]
    assert "certificate" in explained["explain-certificate"]
    assert "ca_file" in explained["explain-certificate"]
    assert "SSL_CERT_FILE" in explained["explain-certificate"]
    assert "counts as skipped" not in explained["explain-dead"], "it is a dead letter"
    assert "'Disallow: /internal/'" in explained["explain-robots"]


@pytest.mark.skipif(find() is None, reason="no Chromium")
def test_the_bundle_opens_in_a_browser(ran: tuple[Path, dict[str, Ran]]) -> None:
    report = open_report(ran[0] / "orgs" / "handover" / "report.html")
    assert report.records > 0
    assert report.quotes > 0
    assert 0 < report.tallest_row_px < 90, "three lines: a long list does not fill the screen"
