"""Reads a file of any kind. Runs in the child process of `services.document_process`."""

from __future__ import annotations

from collections.abc import Callable

from curtsy.content.documents import docx, epub, odf, pdf, plain, pptx, rtf, xlsx
from curtsy.content.documents.builder import Builder, Unreadable
from curtsy.content.documents.model import FileText, Limits, Problem

_READERS: dict[str, Callable[[Builder, bytes, str | None], None]] = {
    "pdf": pdf.read_pdf,
    "docx": docx.read_docx,
    "xlsx": xlsx.read_xlsx,
    "pptx": pptx.read_pptx,
    "odt": odf.read_odf,
    "ods": odf.read_odf,
    "odp": odf.read_odf,
    "rtf": rtf.read_rtf,
    "epub": epub.read_epub,
    "csv": plain.read_csv,
    "text": plain.read_text,
}
KINDS = tuple(_READERS)


def read_document(kind: str, body: bytes, limits: Limits, content_type: str | None = None) -> FileText:
    """What the file says. A file that is not read completely has a `problem`, and the text before it."""
    reader = _READERS.get(kind)
    if reader is None:
        return FileText(kind, problem="unsupported", truncated=True)
    builder = Builder(kind, limits)
    problem: Problem = ""
    try:
        reader(builder, body, content_type)
    except Unreadable as ended:
        problem = ended.problem
    return builder.result(problem)
