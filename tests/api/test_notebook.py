"""Pages and records in a notebook: tables without anything that runs."""

from __future__ import annotations

import json
from pathlib import Path

import lxml.html
import pytest
import stored

import curtsy.api as curtsy
from curtsy.api.notebook import Record
from curtsy.core.record import Record as StoredRecord
from curtsy.core.settings_loading import load
from curtsy.records import plan
from curtsy.store import records
from curtsy.store.engine import Store

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>'\"&"
SCHEMA = {"title": "shop", "type": "object", "properties": {"name": {"type": "string"}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    settings = load(data_dir=tmp_path)
    with Store.open(settings.effective_store_url) as store:
        segments = stored.folder_of(settings)
        crawl = stored.crawl(store, **plan.crawl_fields(SCHEMA))
        body = b"<p>&lt;script&gt;alert(2)&lt;/script&gt; tea"
        (page,) = stored.add_pages(store, segments, crawl, [("https://a.test/", body)], title=EVIL)
        segments.close()
        quotes = [{"quote": EVIL, "url": page.url}, {"quote": "two", "url": "javascript:alert(1)"}]
        field = {"path": "/name", "value": EVIL, "rung": "selector", "verdict": "supported", "evidence": quotes}
        store.run(
            records.add,
            StoredRecord(
                crawl=crawl.n, subject=page.fp.hex(), schema="shop", schema_hash=crawl.schema_hash, url=page.url,
                data={"name": EVIL}, fields=(field,), created_ms=stored.BEGUN_MS,
            ),
        )  # fmt: skip
    return tmp_path


def cells(html: str) -> list[list[str]]:
    """The texts of the table rows; the page must contain only harmless elements and attributes."""
    root = lxml.html.fragment_fromstring(html, create_parent=True)
    assert {node.tag for node in root.iter()} <= {"div", "table", "tbody", "tr", "th", "td", "a", "b", "pre"}
    attributes = {(name, value.partition(":")[0]) for node in root.iter() for name, value in node.attrib.items()}
    assert {name for name, _ in attributes} <= {"style", "href", "rel", "target"}
    assert {scheme for name, scheme in attributes if name == "href"} <= {"http", "https"}
    return [[cell.text_content() for cell in row if cell.tag in ("td", "th")] for row in root.iter("tr")]


def test_a_page_shows_its_facts_and_text(folder: Path) -> None:
    (page,) = curtsy.pages("last", data_dir=folder)
    html = page._repr_html_()
    assert ["title", EVIL] in cells(html)
    assert "&lt;script&gt;alert(2)&lt;/script&gt; tea" in html


def test_a_record_shows_its_values_with_their_evidence(folder: Path) -> None:
    (record,) = curtsy.records("last", data_dir=folder)
    rows = cells(record._repr_html_())
    assert ["/name", EVIL, "supported", EVIL, "https://a.test/"] in rows
    assert ["/name", EVIL, "supported", "two", "javascript:alert(1)"] in rows, "as text, not as a link"
    assert isinstance(record, dict)
    assert json.loads(json.dumps(record, default=str))["data"] == {"name": EVIL}


def test_a_record_without_evidence_and_a_long_value_are_shown() -> None:
    rows = cells(
        Record(fields=[{"path": "/x", "value": ["y" * 1000], "verdict": "judged", "evidence": []}])._repr_html_()
    )
    assert rows[-1][0] == "/x"
    assert len(rows[-1][1]) == 300
