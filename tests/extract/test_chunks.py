"""Which paragraphs of a long page a model is shown."""

from __future__ import annotations

from itertools import pairwise

import office_files
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curtsy.content.documents.layout import FileLayout
from curtsy.core.text_layout import TextLayout
from curtsy.extract import prompts, record_claims
from curtsy.extract.chunks import choose, passages, relates, sentences, tokens_of
from curtsy.grounding import schema as schemas
from curtsy.grounding.schema import Leaf
from curtsy.services.document_process import documents

FOUNDED = Leaf(path="/founded_year", type="integer", description="The year in which it was founded.")
EMAIL = Leaf(path="/contact/email", type="string", description="Where to write to.")
NAME = Leaf(path="/name", type="string")
EMISSIONS = Leaf(path="/emissions", type="number")
SCHEMA = schemas.inline({"title": "Figures", "type": "object", "properties": {"emissions": {"type": "number"}}})
FILLER = "The weather in the valley was mild that week, and the fields were green as far as anybody could see. "


def page(*inserts: tuple[int, str], paragraphs: int = 60) -> str:
    lines = [FILLER * (1 + number % 3) for number in range(paragraphs)]
    for at, text in inserts:
        lines.insert(at, text)
    return "\n\n".join(lines)


def test_a_page_that_fits_is_shown_whole() -> None:
    text = "About us\nWe make paper in a small town by the sea.\n\nCome and visit."
    shown = choose([text], [NAME], 1000)
    assert " ".join(one.text for one in shown).split() == text.split()


def test_of_a_long_page_the_paragraphs_that_speak_of_the_leaves_are_shown() -> None:
    text = page((41, "The company was founded in 1931 by two sisters."), (55, "Mail: post@valley.example"))
    shown = " ".join(one.text for one in choose([text], [FOUNDED, EMAIL], 400))
    assert "founded in 1931" in shown
    assert "post@valley.example" in shown
    assert tokens_of(text) > 2000


def test_a_leaf_that_many_paragraphs_speak_of_does_not_crowd_out_another() -> None:
    much = [(number, f"It was founded as number {number} in the year 19{number}.") for number in range(10, 50)]
    text = page(*much, (52, "Write to us: post@valley.example, at any time of the day."))
    shown = " ".join(one.text for one in choose([text], [FOUNDED, EMAIL], 200))
    assert "post@valley.example" in shown


def test_all_pages_have_a_say_and_stay_in_order() -> None:
    pages = [page(), page((30, "Founded in 1999 as a workshop for bicycles."))]
    shown = choose(pages, [FOUNDED], 300)
    assert any("1999" in one.text and one.page == 1 for one in shown)
    assert [(one.page, one.start) for one in shown] == sorted((one.page, one.start) for one in shown)


def test_what_is_to_be_left_out_is_not_shown_even_if_all_would_fit() -> None:
    text = "A good line.\nA bad line.\nAnother good line.\nA bad paragraph that is somewhat longer than a heading."
    shown = choose([text], [NAME], 1000, leave_out=lambda said: "bad" in said)
    assert " ".join(one.text for one in shown).split() == ["A", "good", "line.", "Another", "good", "line."]


def test_a_heading_stands_with_what_follows_it() -> None:
    found = passages("Contact\nWrite to post@valley.example whenever you like to.\nThe end of the page.")
    assert found[0].text.startswith("Contact\nWrite")


@pytest.mark.parametrize(
    ("leaf", "sentence", "expected"),
    [
        (FOUNDED, "The firm was established in 1931.", True),
        (FOUNDED, "Since 2015 all our mills run on hydropower.", False),
        (FOUNDED, "Turnover was 2015 million.", False),
        (EMAIL, "post@valley.example", True),
        (EMAIL, "The valley is green.", False),
        (EMAIL, "Mail: post@valley.example", True),
        (EMAIL, "Hosting: post@hoster.example", False),
        (NAME, "Green Leaf Ltd", True),
        (Leaf(path="/headquarters", type="string"), "Green Leaf Ltd", False),
        (Leaf(path="/headquarters", type="string"), "We are based in Oslo.", True),
        (Leaf(path="/opening_hours", type="string"), "Opening at nine.", True),
    ],
)
def test_a_sentence_relates_to_a_leaf_by_its_words_or_by_what_its_values_look_like(
    leaf: Leaf, sentence: str, expected: bool
) -> None:
    assert relates(leaf, sentence) is expected


def test_sentences_are_words_as_they_stand() -> None:
    assert list(sentences("One. Two!\n\n Three ")) == ["One.", "Two!", "Three"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(max_size=900), max_size=4), st.integers(1, 400))
def test_whatever_the_texts_passages_are_spans_in_order_and_within_the_budget(texts: list[str], budget: int) -> None:
    for number, text in enumerate(texts):
        found = passages(text, number)
        assert all(text[one.start : one.end] == one.text and one.text.strip() for one in found)
        assert all(a.end <= b.start for a, b in pairwise(found))
        assert "".join("".join(one.text for one in found).split()) == "".join(text.split())
    shown = choose(texts, [FOUNDED, EMAIL], budget)
    assert sum(one.tokens for one in shown) <= budget
    assert shown == choose(texts, [FOUNDED, EMAIL], budget)


# Documents


def document() -> tuple[str, TextLayout]:
    body = "".join(
        (
            office_files.paragraph("History", "Heading1"),
            *(office_files.paragraph(FILLER * 4) for _ in range(9)),
            office_files.paragraph("The mill was bought in 1931."),
            office_files.paragraph("Figures", "Heading1"),
            *(office_files.paragraph(FILLER * 4) for _ in range(9)),
        )
    )
    styles = '<w:style w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    file = documents.read("docx", office_files.docx(body, styles=styles))
    assert [file.text[one.start : one.end] for one in file.headings] == ["History", "Figures"]
    return file.text, FileLayout(file, len(file.text))


def test_a_passage_of_a_document_has_the_heading_of_its_section() -> None:
    text, layout = document()
    found = passages(text, layout=layout)
    bought = next(one for one in found if "1931" in one.text)
    assert bought.context == "History"
    assert next(one for one in found if one.text.startswith("Figures")).context == ""  # it has its heading
    assert found[-1].context == "Figures"
    assert not any("1931" in one.text and "Figures" in one.text for one in found)


def test_the_heading_decides_which_passages_of_a_document_are_shown() -> None:
    text, layout = document()
    wanted = Leaf(path="/history", type="string")
    assert all(one.context == "History" for one in choose([text], [wanted], 400, layouts=[layout])[1:])


def test_rows_of_a_table_are_shown_with_the_labels_of_their_columns() -> None:
    rows: list[list[str | float]] = [["Measure", "2022", "2023"]]
    rows += [[f"Emissions of the plant number {n} in tonnes", n, n + 1] for n in range(40)]
    file = documents.read("xlsx", office_files.xlsx({"Figures": office_files.sheet(rows)}))
    found = passages(file.text, layout=FileLayout(file, len(file.text)))
    assert found[-1].text.startswith("Emissions of the plant number 39")
    assert found[-1].context == "2022 | 2023"
    page = record_claims.sources_of("p", "https://a.test/f.xlsx", b"", None, file)
    prompt = prompts.extraction(SCHEMA, [EMISSIONS], [page], 4000)
    assert prompt is not None
    assert prompt.content.count("(2022 | 2023)") == 1
