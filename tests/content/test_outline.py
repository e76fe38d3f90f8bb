"""What is counted of each element, compared with counts that look at one element at a time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from curtsy.content.document import Document
from curtsy.content.main_content.outline import Element, Outline, outline

SENTENCE = "The old harbor was rebuilt in three years, and its engineers are content with the quay. "
TEXT = st.sampled_from(
    ("word ", " ", "two words", SENTENCE, 2 * SENTENCE, "long text without marks of a sentence " * 2)
)


def element(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    start = st.sampled_from(("p", "div", "b", 'a href="/x"', 'a href="#x"', "a", 'li class="item"', "td", "h2"))
    return st.tuples(start, st.lists(inner, max_size=4)).map(
        lambda made: f"<{made[0]}>{''.join(made[1])}</{made[0].partition(' ')[0]}>"
    )


PAGE = st.lists(st.recursive(TEXT, element, max_leaves=12), max_size=6).map("".join)


def outermost_links(page: Outline) -> list[Element]:
    found: list[Element] = []
    for one in page.elements:
        href = one.attributes.get("href")
        is_footnote = href == "#x" and one.end - one.start <= 5
        is_link = one.tag == "a" and one.end > one.start and bool(href) and not is_footnote
        if is_link and (not found or one.start >= found[-1].end):
            found.append(one)
    return found


def prose_up_to(page: Outline, linked: list[bool], position: int) -> float:
    total, start = 0.0, 0
    for line in page.text.split("\n"):
        end = start + len(line)
        plain = sum(not is_linked for is_linked in linked[start:end])
        weight = 0.0
        if plain >= 50 and plain >= 0.4 * len(line):
            weight = float(plain) if plain >= 100 or "," in line or "." in line else 0.3 * plain
        total += weight * min(1.0, max(0.0, (position - start) / max(1, end - start)))
        start = end + 1
    return total


@settings(max_examples=200, deadline=None)
@given(PAGE)
def test_counts_are_those_of_each_element_alone(body: str) -> None:
    document = Document.parse(
        f"<html><body>{body}</body></html>".encode(), "text/html; charset=utf-8", "https://a.test/"
    )
    page = outline(document.page_tree())
    linked = [False] * len(page.text)
    for link in outermost_links(page):
        linked[link.start : link.end] = [True] * (link.end - link.start)
    for one in page.elements:
        within = range(one.start, one.end)
        assert one.letters == len(within)
        assert one.linked == sum(linked[at] for at in within)
        prose = prose_up_to(page, linked, one.end) - prose_up_to(page, linked, one.start)
        assert abs(one.prose - prose) < 1e-6
