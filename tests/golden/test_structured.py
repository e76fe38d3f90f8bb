"""The structured data of labeled pages is read as a person expects it."""

from __future__ import annotations

import pytest
import structured_pages
from structured_pages import Page

PAGES = structured_pages.pages()


def test_there_are_pages_of_every_kind() -> None:
    assert {kind for page in PAGES for kind in page.expected} == set(structured_pages.KINDS)


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_the_data_of_a_page_is_what_it_states(page: Page) -> None:
    assert structured_pages.found(page.body) == page.expected
