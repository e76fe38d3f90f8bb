"""Records from documents over HTTP and on the review page: part, boxes, labels, and the picture of the page."""

from __future__ import annotations

import re
from typing import Any

import office_files
import orgs
import pdf_files
import png_files
import pytest
import stored
from flask import Flask
from flask.testing import FlaskClient

from curtsy.core.settings import Settings
from curtsy.store.engine import Store

WORDS = pdf_files.WORDS.strip().capitalize()
HOME = (
    "<!doctype html><title>Home | Alder Trust</title><h1>Alder Trust</h1>"
    f"<p>Welcome to Alder Trust. {WORDS}<footer>© 2024 Alder Trust</footer>"
).encode()
PDF_URL, BOOK_URL = "http://a.test/files/annual-report.pdf", "http://a.test/files/key-figures.xlsx"
ROWS: list[list[str | float]] = [["Fact", "Value"], ["Telephone", "+47 55 01 23 45"], ["Staff", 12]]


def report(canvas: Any) -> None:
    pdf_files.string(canvas, 50, 60, "Annual report", 24, "Helvetica-Bold")
    canvas.showPage()
    pdf_files.lines(canvas, f"We were founded in 1954. {WORDS}", 50, 100, 400)


@pytest.fixture
def record(app: Flask, settings: Settings) -> Any:
    store: Store = app.extensions["curtsy"].store
    segments = stored.folder_of(settings)
    book = office_files.xlsx({"Notes": office_files.sheet([["x", "y"]]), "Facts": office_files.sheet(ROWS)})
    pages = [("http://a.test/", HOME), (PDF_URL, pdf_files.pdf(report)), (BOOK_URL, book)]
    crawl = orgs.make(store, segments, pages)
    orgs.run_all(orgs.parts_of(store, segments), crawl)
    (found,) = orgs.all_records(store, crawl, "published")
    return found


def test_a_record_says_where_in_a_document_its_values_are(client: FlaskClient, record: Any) -> None:
    fields = {one["path"]: one for one in client.get(f"/v1/records/{record.n}").get_json()["fields"]}
    (founded,) = fields["/founded_year"]["evidence"]
    assert founded["part"] == {"kind": "page", "number": 2, "label": ""}
    assert (founded["visibility"], founded["ocr"], founded["labels"]) == ("visible", False, [])
    (box,) = founded["boxes"]
    assert (box["page"], box["width"]) == (2, 595.28)
    (phone,) = fields["/contact/phone"]["evidence"]
    assert phone["part"] == {"kind": "sheet", "number": 2, "label": "Facts"}
    assert phone["labels"][0]["text"] == "Telephone"


def test_the_picture_of_a_page(client: FlaskClient, record: Any) -> None:
    fields = {one["path"]: one for one in client.get(f"/v1/records/{record.n}").get_json()["fields"]}
    (founded,) = fields["/founded_year"]["evidence"]
    answer = client.get(f"/v1/pages/{founded['page']}/pictures/2")
    assert (answer.status_code, answer.content_type) == (200, "image/png")
    assert answer.headers["Content-Disposition"].startswith("attachment")
    picture = png_files.read(answer.data)
    (box,) = founded["boxes"]
    scale = picture.width / box["width"]
    assert picture.dark_share(*(box[name] * scale for name in ("x0", "y0", "x1", "y1"))) > 0.05
    phone = fields["/contact/phone"]["evidence"][0]
    for page, number in ((founded["page"], "3"), (founded["page"], "0"), (founded["page"], "x"), (phone["page"], "1")):
        problem = client.get(f"/v1/pages/{page}/pictures/{number}")
        assert problem.status_code == 404
        assert problem.get_json()["type"].endswith("no-picture")
    assert client.get("/v1/pages/1-00000000000000000000000000000000/pictures/1").status_code == 404


def test_the_review_page_shows_the_picture_with_the_quote_marked(client: FlaskClient, record: Any) -> None:
    shown = client.get(f"/review/{record.n}").get_data(as_text=True)
    (picture,) = re.findall(r'<image href="(/pages/[^"]+/pictures/2)" width="595.28"', shown)
    found = client.get(picture)
    assert (found.status_code, found.content_type) == (200, "image/png")
    assert found.headers["Cache-Control"].startswith("private")
    assert len(re.findall(r'<rect id="b-v\d+" data-of="v\d+" x="49', shown)) == 1
    assert "(page 2 of" in shown
    assert "(sheet 2, <bdi>Facts</bdi> of" in shown
    assert "[sheet 2 (Facts)] </span><mark" in shown
    assert "Telephone | Value" in shown
