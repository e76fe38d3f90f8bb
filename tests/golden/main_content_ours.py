"""The main content as Curtsy reads it."""

from __future__ import annotations

from main_content_score import Page

from curtsy.content.document import Document


def main_text(page: Page) -> str:
    return Document.parse(page.body, "text/html; charset=utf-8", page.url).main_text()
