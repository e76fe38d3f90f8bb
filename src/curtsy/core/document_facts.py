"""What is stored with a page that is a document: its kind, the metadata of its file, and why it was not read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

#: why a document has no text, or not all of it -> what that means
PROBLEMS = {
    "no_text": "it has no text, only pictures, such as a scanned page",
    "encrypted": "it needs a password",
    "malformed": "its file is broken",
    "too_large": "it has more text, or unpacks to more bytes, than a reader takes",
    "too_many_pages": "it has more pages than a reader takes",
    "timeout": "reading it took too long",
    "memory": "reading it needed too much memory",
    "unsupported": "its file uses a format that no reader knows",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """A document. Empty texts and 0 are unknown."""

    #: `pdf`, `docx`, ..., as in the setting `document_types`
    kind: str
    #: a key of PROBLEMS; the body is stored, and text that was read before the problem counts
    problem: str = ""
    #: pages, sheets, slides or chapters
    pages: int = 0
    author: str = ""
    #: ISO 8601, as precise as the file says
    created: str = ""
    modified: str = ""
    #: its text was recognized in pictures of pages
    ocr: bool = False

    def dump(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if value}, ensure_ascii=False)

    @classmethod
    def load(cls, text: str) -> DocumentFacts:
        """The inverse of `dump`; fields of later versions are ignored."""
        values = json.loads(text)
        return cls(**{name: values[name] for name in cls.__slots__ if name in values})
