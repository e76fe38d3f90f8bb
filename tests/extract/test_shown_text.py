"""What a language model sees of a page: its main content, as spans of the text that evidence refers to."""

from __future__ import annotations

from curtsy.extract.record_claims import sources_of

HTML = b"""<title>Mill</title><body><nav><a href=/x>Our other pages</a></nav><main><h1>The mill</h1>
<p>The mill was founded in 1912, and it still grinds flour for the town.</p></main>
<footer>Copyright and imprint</footer>"""


def test_a_model_sees_the_main_content() -> None:
    page = sources_of("p", "https://e.example/", HTML, "text/html")
    assert page.shown.strip() == "The mill\nThe mill was founded in 1912, and it still grinds flour for the town."
    assert "Our other pages" in page.text.text


def test_what_a_model_sees_is_at_its_place_in_the_text() -> None:
    page = sources_of("p", "https://e.example/", HTML, "text/html")
    at = page.shown.index("1912")
    assert page.text.text[at : at + 4] == "1912"


def test_a_model_sees_all_of_a_page_without_html() -> None:
    page = sources_of("p", "https://e.example/a.txt", b"Founded in 1912.", "text/plain")
    assert page.shown == "Founded in 1912."
