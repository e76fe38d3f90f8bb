"""The main content as Curtsy reads it."""

from __future__ import annotations

from main_content_score import Page

from curtsy.content.document import Document


def main_text(page: Page) -> str:
    document = Document.parse(page.body, "text/html; charset=utf-8", page.url)
    # Until main content has a reader of its own, all visible text stands for it.
    read = getattr(document, "main_text", document.text)
    return str(read())
