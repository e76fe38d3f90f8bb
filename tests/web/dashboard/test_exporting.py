"""Downloads of the dashboard are the exports of the API; nothing to export is an error, not an empty file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import stored
from flask import Flask
from flask.testing import FlaskClient

from curtsy.core.settings_loading import load
from curtsy.web.dashboard import exporting
from curtsy.web.factory import create_app

HOST = {"Host": "127.0.0.1:8080"}
PAGES = [("https://a.test/", b"<h1>One</h1>"), ("https://b.test/", b"<h1>Two</h1>")]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    settings = load(data_dir=tmp_path / "data")
    made = create_app(settings)
    yield made
    made.extensions["curtsy"].close()


@pytest.fixture
def crawls(app: Flask, tmp_path: Path) -> tuple[str, str]:
    """The ids of a crawl with pages and of one without."""
    store = app.extensions["curtsy"].store
    with closing(stored.folder_of(load(data_dir=tmp_path / "data"))) as segments:
        full = stored.crawl(store)
        stored.add_pages(store, segments, full, PAGES, content_type="text/html", title="=Tea")
    return full.id, stored.crawl(store).id


def test_a_download_is_the_export_of_the_api(app: Flask, crawls: tuple[str, str]) -> None:
    client: FlaskClient = app.test_client()
    full, _ = crawls
    for name, query in (
        ("pages.jsonl", {"format": "jsonl"}),
        ("pages.csv", {"format": "csv", "csv_safe": "true"}),
    ):
        got = client.get(f"/crawls/{full}/export/{name}", headers=HOST)
        assert got.status_code == 200, got.text
        assert got.headers["Content-Disposition"] == f"attachment; filename={full[:13]}-{name}"
        assert got.data == client.get(f"/v1/crawls/{full}/export", query_string=query).data
    assert [
        json.loads(line)["url"]
        for line in client.get(f"/crawls/{full}/export/pages.jsonl", headers=HOST).text.splitlines()
    ] == [url for url, _ in PAGES]
    rows = list(csv.DictReader(client.get(f"/crawls/{full}/export/pages.csv", headers=HOST).text.splitlines()))
    assert {row["title"] for row in rows} == {"'=Tea"}
    warc = client.get(f"/crawls/{full}/export/pages.warc.gz", headers=HOST)
    assert (warc.status_code, warc.data[:2]) == (200, b"\x1f\x8b")


def test_nothing_to_export_is_an_error(app: Flask, crawls: tuple[str, str]) -> None:
    client: FlaskClient = app.test_client()
    for name, _, _ in exporting.FORMATS:
        got = client.get(f"/crawls/{crawls[1]}/export/{name}", headers=HOST)
        assert got.status_code == 422, name
        assert "no pages" in got.text or "no records" in got.text
    assert client.get(f"/crawls/{crawls[0]}/export/pages.exe", headers=HOST).status_code == 404
