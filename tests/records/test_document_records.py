"""Records from documents: of a site's pages and its PDF together, of a document alone, within the limits of reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import office_files
import orgs
import pdf_files
import pytest

from curtsy.core.record import Record
from curtsy.records import evidence, golden_cases, serialize
from curtsy.records import review as reviewing
from curtsy.records.extraction import field_from, field_of
from curtsy.records.review import Decision
from curtsy.store.engine import Store
from curtsy.store.segments import Segments

HOME = (
    "<!doctype html><title>Home | Alder Trust</title><h1>Alder Trust</h1>"
    f"<p>Welcome to Alder Trust. {pdf_files.WORDS}<footer>© 2024 Alder Trust</footer>"
).encode()
FACTS = [["Fact", "Value"], ["Founded", "1954"], ["Headquarters", "Bergen, Norway"], ["Telephone", "+47 55 01 23 45"]]
KEYS = {"page", "url", "source", "locator", "sha256", "start", "end", "quote"}
NEW_KEYS = {"visibility", "labels", "part", "boxes", "ocr"}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Store, Segments]]:
    segments = Segments(tmp_path / "segments")
    with Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        yield store, segments
    segments.close()


def report(canvas: Any) -> None:
    pdf_files.string(canvas, 50, 60, "Annual report 2023", 24, "Helvetica-Bold")
    pdf_files.lines(canvas, pdf_files.WORDS * 3, 50, 100, 400)
    canvas.showPage()
    pdf_files.table(canvas, FACTS, [60, 300], 100, bold_first=True)


def records(
    opened: tuple[Store, Segments], pages: list[tuple[str, bytes]], schema: Any = "organization", **settings: Any
) -> list[Record]:
    store, segments = opened
    crawl = orgs.make(store, segments, pages, schema)
    orgs.run_all(orgs.parts_of(store, segments, **settings), crawl)
    return orgs.all_records(store, crawl, "published", "held")


def test_a_site_s_record_is_made_of_its_pages_and_its_documents(opened: tuple[Store, Segments]) -> None:
    pdf = pdf_files.pdf(report)
    (record,) = records(opened, [("http://a.test/", HOME), ("http://a.test/files/24/annual-report.pdf", pdf)])
    assert record.status == "published"
    assert record.url == "http://a.test/"
    assert record.data == {
        "name": "Alder Trust",
        "founded_year": 1954,
        "headquarters": "Bergen, Norway",
        "contact": {"phone": "+47 55 01 23 45"},
    }
    shown = {field["path"]: field["evidence"][0] for field in serialize.line(record)["fields"]}
    assert all(set(one) == KEYS | NEW_KEYS for one in shown.values())
    assert (shown["/name"]["part"], shown["/name"]["boxes"], shown["/name"]["visibility"]) == (None, [], "visible")
    founded = shown["/founded_year"]
    assert founded["url"].endswith("annual-report.pdf")
    assert founded["part"] == {"kind": "page", "number": 2, "label": ""}
    assert [(one["kind"], one["text"]) for one in founded["labels"]] == [("row", "Founded"), ("column", "Value")]
    assert [box["page"] for box in founded["boxes"]] == [2]
    assert evidence.place_of(founded) == "http://a.test/files/24/annual-report.pdf, page 2"
    assert evidence.labels_of(founded) == "Founded | Value"


@pytest.mark.parametrize(
    ("link", "is_used"),
    [
        ('<a href="/files/x18.pdf">Annual report 2023</a>', True),
        ('<ul><li>Sustainability report 2025 (PDF, 3 MB) <a href="files/x18.pdf#page=2">Download</a></li></ul>', True),
        ('<a href="/files/x18.pdf" title="Fact sheet"><img src="/cover.png"></a>', True),
        ('<a href="/files/x18.pdf">Menu of the day</a>', False),
        ('<a href="/files/x19.pdf">Annual report 2023</a>', False),
    ],
)
def test_the_text_of_a_link_says_what_a_document_is(opened: tuple[Store, Segments], link: str, is_used: bool) -> None:
    pdf = pdf_files.pdf(lambda canvas: pdf_files.table(canvas, FACTS, [60, 300], 100, bold_first=True))
    home = HOME.replace(b"<footer>", link.encode() + b"<footer>")
    (record,) = records(opened, [("http://a.test/", home), ("http://a.test/files/x18.pdf", pdf)])
    assert record.data.get("founded_year") == (1954 if is_used else None)


def test_evidence_is_stored_without_defaults_and_read_back(opened: tuple[Store, Segments]) -> None:
    (record,) = records(opened, [("http://a.test/", HOME), ("http://a.test/annual-report.pdf", pdf_files.pdf(report))])
    for field in record.fields:
        assert field_of(field_from(field)) == field
    plain = next(one["evidence"][0] for one in record.fields if one["path"] == "/name")
    assert set(plain) == KEYS  # records of earlier versions have these only


SHEET = office_files.xlsx({"Facts": office_files.sheet([["Founded", 1954], ["Staff", 12], ["Name", "Alder"]])})
LABELLED = {"type": ["integer", "null"], "x-curtsy": {"label": "^Founded$"}}


def test_a_schema_for_pages_applies_to_documents(opened: tuple[Store, Segments]) -> None:
    schema = {"title": "Facts", "type": "object", "properties": {"founded": LABELLED}}
    (record,) = records(opened, [("http://a.test/facts.xlsx", SHEET)], schema)
    assert record.data == {"founded": 1954}
    assert record.fields[0]["evidence"][0]["part"] == {"kind": "sheet", "number": 1, "label": "Facts"}


def test_the_schema_page_describes_documents(opened: tuple[Store, Segments]) -> None:
    (record,) = records(opened, [("http://a.test/r.pdf", pdf_files.pdf(report))], "page")
    assert record.data["title"] == "Annual report 2023"
    assert record.data["words"] > 140
    assert {"level": 1, "text": "Annual report 2023"} in record.data["headings"]
    (evidence,) = next(one["evidence"] for one in record.fields if one["path"] == "/headings/0")
    assert " ".join(evidence["quote"].split()) == record.data["headings"][0]["text"]
    assert evidence["part"]["number"] == 1
    assert evidence["boxes"]


def test_what_cannot_be_read_has_no_values_and_is_no_failure(opened: tuple[Store, Segments]) -> None:
    whole = pdf_files.pdf(report)
    broken = ("http://a.test/annual-report.pdf", whole[: len(whole) // 3])
    (record,) = records(opened, [("http://a.test/", HOME), broken])
    assert record.data == {"name": "Alder Trust"}


def test_a_document_with_too_many_pages_gives_what_its_first_pages_say(opened: tuple[Store, Segments]) -> None:
    def draw(canvas: Any) -> None:
        pdf_files.lines(canvas, f"We were founded in 1954. {pdf_files.WORDS}", 50, 100, 400)
        for n in range(20):
            canvas.showPage()
            pdf_files.lines(canvas, f"Our headquarters are in Bergen, Norway. Page {n}.", 50, 100, 400)

    pages = [("http://a.test/", HOME), ("http://a.test/annual-report.pdf", pdf_files.pdf(draw))]
    (record,) = records(opened, pages, max_document_pages=1)
    assert record.data == {"name": "Alder Trust", "founded_year": 1954}


def test_a_corrected_value_has_its_place_in_the_document(opened: tuple[Store, Segments], tmp_path: Path) -> None:
    store, segments = opened
    (record,) = records(opened, [("http://a.test/", HOME), ("http://a.test/annual-report.pdf", pdf_files.pdf(report))])
    parts = orgs.parts_of(store, segments)
    wrong = Decision(decision="correct", who="ada", correction={"/founded_year": 1950})
    reviewing.decide(store, record.n, wrong, 1, parts)
    right = Decision(decision="correct", who="ada", correction={"/founded_year": 1954})
    made = reviewing.decide(store, record.n, right, 2, parts)
    (one,) = next(field["evidence"] for field in made.fields if field["path"] == "/founded_year")
    assert one["part"] == {"kind": "page", "number": 2, "label": ""}
    assert [box["page"] for box in one["boxes"]] == [2]
    assert [label["text"] for label in one["labels"]] == ["Founded", "Value"]
    (folder,) = golden_cases.export_golden(store, segments, tmp_path / "golden", every=True)
    assert sorted(path.name for path in folder.iterdir()) == ["case.json", "page-0.html", "page-1.pdf"]
