"""Documents."""

from __future__ import annotations

from pydantic import BaseModel, Field

from curtsy.core.document_facts import PROBLEMS


class DocumentInfo(BaseModel):
    """The facts about a page that is a document. Empty texts and 0 are unknown."""

    kind: str = Field(description="`pdf`, `docx`, ..., as in the setting `document_types`.")
    problem: str = Field(
        description=f"Why it was not read completely: {', '.join(f'`{word}`' for word in PROBLEMS)}; else empty. "
        "Its body is stored."
    )
    pages: int = Field(description="Pages, sheets, slides or chapters.")
    author: str
    created: str = Field(description="ISO 8601, as precise as the file says.")
    modified: str
    ocr: bool = Field(description="Its text was recognized in pictures of pages.")
