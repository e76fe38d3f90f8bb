"""PDF through PDFium: the words of each page with their boxes, links, and facts. `pdf_layout` finds the structure."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from curtsy.content.documents import ocr
from curtsy.content.documents.builder import Builder, Unreadable
from curtsy.content.documents.pdf_layout import Sheet, Word, blocks_of
from curtsy.content.documents.pdf_text import Writer

#: PDFium writes a hyphen at the end of a line as one of these, and the next line without a gap
_LINE_HYPHENS = ("\x02", "\ufffe")
#: white space of Unicode, without the separators U+001C to U+001F
_BLANK = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = re.compile(f"[^{_BLANK}\x02\ufffe]+[\x02\ufffe]?")
#: Fonts of TeX without names of characters give their ligatures as these codes.
_LIGATURES = {0x1B: "ff", 0x1C: "fi", 0x1D: "fl", 0x1E: "ffi", 0x1F: "ffl"}
_HAS_LIGATURE = re.compile("[\x1b-\x1f]")
#: a page that is a picture may have a stamp or a page number as text
_FEW_CHARACTERS = 20
#: the usual font size is that of the first pages
_LOOKED_PAGES = 20
_MOST_CHARACTERS_PER_PAGE = 400_000
#: titles that programs write if the author gave none
_NO_TITLES = frozenset(("untitled", "(untitled)", "unknown", "document", "microsoft word", "powerpoint presentation"))
_LOOKED_OBJECTS = 100
_MOST_LINKS_PER_PAGE = 2_000
_DATE = re.compile(r"D?:?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?([Z+-]\d{0,2}'?\d{0,2})?")


def read_pdf(builder: Builder, body: bytes, _content_type: str | None = None) -> None:
    document = _opened(body)
    try:
        builder.page_count = len(document)
        _facts(builder, document)
        _read_pages(builder, document)
    finally:
        document.close()


def _opened(body: bytes) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(body)
    except pdfium.PdfiumError as error:
        locked = getattr(error, "err_code", None) in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
        raise Unreadable("encrypted" if locked else "malformed") from None


def _read_pages(builder: Builder, document: pdfium.PdfDocument) -> None:
    pages = _pages(builder, document)
    first, ended = _looked_at(pages)
    sizes: Counter[float] = Counter()
    for sheet in first:
        for word in sheet.words if sheet else ():
            sizes[round(word.size * 2) / 2] += len(word.text)
    body_size = sizes.most_common(1)[0][0] if sizes else 10.0
    broken = pictures = recognized = 0
    writer = Writer(builder, body_size)
    for number, sheet in enumerate(chain(first, pages), 1):
        builder.begin("page", _page_label(document, number))
        builder.page_sizes.append((0.0, 0.0) if sheet is None else (round(sheet.width, 2), round(sheet.height, 2)))
        if sheet is None:
            broken += 1
            continue
        for href in sheet.links:
            builder.link(href)
        pictures += sheet.is_picture
        recognized += sheet.is_recognized
        writer.page(number, blocks_of(sheet))
    if ended is not None:
        raise ended
    if broken:
        raise Unreadable("malformed")
    if pictures and recognized:
        builder.left_out = True
    elif pictures and builder.size < _FEW_CHARACTERS * builder.page_count:
        raise Unreadable("no_text")


def _looked_at(pages: Iterator[Sheet | None]) -> tuple[list[Sheet | None], Unreadable | None]:
    """The first pages, and why there are no more: what was read until then counts."""
    first: list[Sheet | None] = []
    try:
        first.extend(islice(pages, _LOOKED_PAGES))
    except Unreadable as error:
        return first, error
    return first, None


def _pages(builder: Builder, document: pdfium.PdfDocument) -> Iterator[Sheet | None]:
    for index in range(len(document)):
        if index > builder.limits.pages:
            return  # `Builder.begin` reports it
        builder.look()
        try:
            page = document[index]
        except pdfium.PdfiumError:
            yield None
            continue
        try:
            sheet = _sheet(document, page)
            yield _recognized(builder, page, sheet) if sheet.is_picture and builder.limits.ocr else sheet
        except pdfium.PdfiumError:
            yield None
        finally:
            page.close()


def _sheet(document: pdfium.PdfDocument, page: pdfium.PdfPage) -> Sheet:
    text_page = page.get_textpage()
    try:
        words = _words(page, text_page)
    finally:
        text_page.close()
    is_picture = sum(len(word.text) for word in words) < _FEW_CHARACTERS and _has_picture(page)
    return Sheet(page.get_width(), page.get_height(), words, _links(document, page), is_picture)


def _recognized(builder: Builder, page: pdfium.PdfPage, sheet: Sheet) -> Sheet:
    """The page with the words of its picture; unchanged if it has none, or if enough pages were searched."""
    if builder.recognized_pages == builder.limits.ocr_pages:
        return sheet
    with builder.recognizing():
        words = ocr.words_of(page)
    return sheet._replace(words=words, is_picture=False, is_recognized=True) if words else sheet


def _has_picture(page: pdfium.PdfPage) -> bool:
    count = min(raw.FPDFPage_CountObjects(page), _LOOKED_OBJECTS)
    kinds = (raw.FPDFPageObj_GetType(raw.FPDFPage_GetObject(page, n)) for n in range(count))
    return any(kind in (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM) for kind in kinds)


def _words(page: pdfium.PdfPage, text_page: pdfium.PdfTextPage) -> list[Word]:
    """The words in the order of the file. Two calls of PDFium each: those for every character take most of the time."""
    count = min(raw.FPDFText_CountChars(text_page), _MOST_CHARACTERS_PER_PAGE)
    if count <= 0:
        return []
    text, index_of = _text(text_page, count)
    place = _placing(page)
    box, handle = raw.FS_RECTF(), text_page.raw
    at, get, size_of = ctypes.byref(box), raw.FPDFText_GetLooseCharBox, raw.FPDFText_GetFontSize
    words = []
    for found in _WORD.finditer(text):
        first, last = index_of(found.start()), index_of(found.end() - 1)
        if not get(handle, first, at):
            continue
        left, bottom, right, top = box.left, box.bottom, box.right, box.top
        if last > first and get(handle, last, at):
            left, right = min(left, box.left), max(right, box.right)
            bottom, top = min(bottom, box.bottom), max(top, box.top)
        x0, y0, x1, y1 = place(left, bottom, right, top)
        if x1 > x0 and y1 > y0:
            size = size_of(handle, first)
            # The size in the file is before scaling: a size that does not fit the box is replaced by its height.
            height = y1 - y0
            size = size if 0.5 * height < size < 2 * height else height * 0.85
            word = found[0]
            word = f"{word[:-1]}-" if word.endswith(_LINE_HYPHENS) else word
            if _HAS_LIGATURE.search(word):
                word = _with_ligatures(word)
            if word:
                words.append(Word(x0, y0, x1, y1, size, word, _is_bold(handle, first)))
    return words


def _with_ligatures(word: str) -> str:
    """Codes of ligatures within a word become letters. Without letters beside them they are unknown symbols: ""."""
    return word.translate(_LIGATURES) if any(character.isalpha() for character in word) else ""


def _text(text_page: pdfium.PdfTextPage, count: int) -> tuple[str, Any]:
    """The text, and which character of PDFium is at an offset of it."""
    buffer = ctypes.create_string_buffer(2 * (count + 1))
    length = raw.FPDFText_GetText(text_page, 0, count, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)))
    text = buffer.raw[: 2 * max(0, length - 1)].decode("utf-16-le", "surrogatepass")
    if len(text) == count:
        return text, int
    # Characters outside of the first plane, or that PDFium leaves out of the text: one by one.
    codes = [raw.FPDFText_GetUnicode(text_page, n) for n in range(count)]
    return "".join(chr(code) if code < 0x110000 else "\ufffd" for code in codes), int


def _is_bold(handle: Any, index: int) -> bool:
    return bool(raw.FPDFText_GetFontWeight(handle, index) >= 600)


def _placing(page: pdfium.PdfPage) -> Any:
    """From the coordinates of the file (origin bottom left, not rotated) to those of the page as it is seen."""
    left, bottom, right, top = page.get_cropbox()
    turn = page.get_rotation()
    if turn == 90:
        return lambda x0, y0, x1, y1: (y0 - bottom, x0 - left, y1 - bottom, x1 - left)
    if turn == 180:
        return lambda x0, y0, x1, y1: (right - x1, y0 - bottom, right - x0, y1 - bottom)
    if turn == 270:
        return lambda x0, y0, x1, y1: (top - y1, right - x1, top - y0, right - x0)
    return lambda x0, y0, x1, y1: (x0 - left, top - y1, x1 - left, top - y0)


def _links(document: pdfium.PdfDocument, page: pdfium.PdfPage) -> list[str]:
    found: list[str] = []
    position, link = ctypes.c_int(0), raw.FPDF_LINK()
    while len(found) < _MOST_LINKS_PER_PAGE and raw.FPDFLink_Enumerate(page, position, link):
        action = raw.FPDFLink_GetAction(link)
        if action and raw.FPDFAction_GetType(action) == raw.PDFACTION_URI:
            size = raw.FPDFAction_GetURIPath(document, action, None, 0)
            if 0 < size < 10_000:
                buffer = ctypes.create_string_buffer(size)
                raw.FPDFAction_GetURIPath(document, action, buffer, size)
                found.append(_decoded(buffer.value))
    return found


def _decoded(address: bytes) -> str:
    """Addresses should be ASCII. Some files have UTF-8 in them, others the encoding of PDF, much like Latin-1."""
    try:
        return address.decode()
    except UnicodeDecodeError:
        return address.decode("latin-1")


def _facts(builder: Builder, document: pdfium.PdfDocument) -> None:
    facts = document.get_metadata_dict()
    title = facts.get("Title", "")
    builder.facts(
        title="" if title.lower() in _NO_TITLES else title, author=facts.get("Author"), language=_language(document),
        created=iso_date(facts.get("CreationDate", "")), modified=iso_date(facts.get("ModDate", "")),
    )  # fmt: skip


def _language(document: pdfium.PdfDocument) -> str:
    size = raw.FPDFCatalog_GetLanguage(document, None, 0)
    if not 2 < size < 200:
        return ""
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFCatalog_GetLanguage(document, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw.decode("utf-16-le", "replace").rstrip("\0")


def _page_label(document: pdfium.PdfDocument, number: int) -> str:
    label = document.get_page_label(number - 1)
    return label if label and label != str(number) else ""


def iso_date(date: str) -> str:
    """The date of a PDF as ISO 8601.

    >>> iso_date("D:20250208122313+01'00'"), iso_date("D:2024"), iso_date("yesterday")
    ('2025-02-08T12:23:13+01:00', '2024', '')
    """
    found = _DATE.match(date.strip())
    if found is None:
        return ""
    year, month, day, hour, minute, second, zone = found.groups()
    day_part = "-".join(part for part in (year, month, day) if part)
    if not (day and hour and minute):
        return day_part
    zone = (zone or "").replace("'", "")
    offset = "Z" if zone[:1] == "Z" else f"{zone[:3]}:{zone[3:5] or '00'}" if len(zone) >= 3 else ""
    return f"{day_part}T{hour}:{minute}:{second or '00'}{offset}"
