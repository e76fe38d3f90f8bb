"""RTF: paragraphs, headings by outline level or style, tables, links, facts. Pictures and fonts are skipped."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace

from curtsy.content.documents.builder import Builder, Unreadable
from curtsy.content.documents.cells import OpenTable

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?[0-9]{1,9})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}\r\n]+)|[\r\n]+|\\"
)
#: destinations whose text is not part of the document
_SKIPPED = frozenset(
    b"colortbl fontemb pict object header headerl headerr headerf footer footerl footerr footerf "
    b"listtable listoverridetable rsidtbl generator xmlnstbl themedata colorschememapping datastore latentstyles "
    b"revtbl filetbl template userprops operator company category keywords comment doccomm hlinkbase annotation "
    b"atnid atnauthor atnref atntime atndate atnparent nonshppict bkmkstart bkmkend mmathPr pgptbl ftnsep ftnsepc "
    b"aftnsep aftnsepc tc xe listtext pntext pntxta pntxtb".split()
)
#: destinations that are read although a reader may ignore them
_READ_ANYWAY = frozenset(b"shptxt shpinst fldinst".split())
_FACTS = {b"title": "title", b"author": "author"}
_DATES = {b"creatim": "created", b"revtim": "modified"}
_CHARACTERS = {
    b"tab": "\t", b"line": "\n", b"emdash": "—", b"endash": "–", b"lquote": "‘", b"rquote": "’", b"ldblquote": "“",
    b"rdblquote": "”", b"bullet": "•", b"emspace": " ", b"enspace": " ", b"qmspace": " ",
}  # fmt: skip
_SYMBOLS = {b"~": "\u00a0", b"_": "-", b"-": "", b"{": "{", b"}": "}", b"\\": "\\", b"\n": "\0", b"\r": "\0"}
#: \fcharset -> codec
_CHARSETS = {
    0: "cp1252", 77: "mac-roman", 128: "cp932", 129: "cp949", 134: "gbk", 136: "cp950", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
_HEADING = re.compile(r"heading ?([1-9])")
_TOKENS_PER_LOOK = 20_000


@dataclass(frozen=True, slots=True)
class _Group:
    """The state inside a pair of braces."""

    skips: bool = False
    hidden: bool = False
    #: characters after \u that repeat it for old readers
    repeats: int = 1
    font: int = 0
    #: fonttbl, stylesheet, fldinst, a fact, or the text
    into: bytes = b""


def read_rtf(builder: Builder, body: bytes, _content_type: str | None = None) -> None:
    if not body.startswith(b"{\\rtf"):
        raise Unreadable("malformed")
    reader = _Reader(builder)
    try:
        reader.read(body)
    finally:
        reader.finish()


class _Reader:
    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._groups: list[_Group] = []
        self._now = _Group()
        self._codec = "cp1252"
        self._fonts: dict[int, str] = {}
        self._levels: dict[int, int] = {}
        self._table: OpenTable | None = None
        self._in_table = False
        #: text of the paragraph or of the open destination
        self._pieces: list[str] = []
        self._bytes = bytearray()
        self._aside: list[str] = []
        self._to_skip = 0
        self._level = 0
        self._style = 0
        self._is_item = False
        self._row_is_header = False
        self._date: dict[bytes, int] = {}

    def read(self, body: bytes) -> None:
        position, steps, star = 0, 0, False
        match = _TOKEN.match
        while position < len(body):
            found = match(body, position)
            if found is None:
                break
            position = found.end()
            steps += 1
            if steps % _TOKENS_PER_LOOK == 0:
                self._builder.look()
            word, number, code, symbol, brace, text = found.groups()
            if text is not None or code is not None:
                self._raw(text if text is not None else bytes((int(code, 16),)))
            elif word is not None:
                value = None if number is None else int(number)
                if word == b"bin" and value is not None:
                    position += max(0, value)
                else:
                    self._word(word, value, star)
            elif brace is not None:
                self._brace(brace)
            elif symbol is not None:
                if symbol == b"*":
                    star = True
                    continue
                self._put(_SYMBOLS.get(symbol, ""))
            star = False
        if len(self._groups) > 0:
            raise Unreadable("malformed")

    def finish(self) -> None:
        self._groups.clear()
        self._now = _Group()
        if self._pieces or self._bytes:
            self._paragraph()
        self._end_table()

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._to_skip = 0
        if brace == b"{":
            self._groups.append(self._now)
            if len(self._groups) > 10 * self._builder.limits.depth:
                raise Unreadable("too_large")
        elif self._groups:
            before = self._now
            if before.into == b"stylesheet":
                self._end_style()
            self._now = self._groups.pop()
            if before.into != self._now.into:
                self._end_aside(before)

    def _raw(self, data: bytes) -> None:
        if self._now.skips or self._now.hidden:
            return
        if self._to_skip:
            dropped = min(self._to_skip, len(data))
            self._to_skip -= dropped
            data = data[dropped:]
        self._bytes += data

    def _put(self, text: str) -> None:
        if self._to_skip:
            self._to_skip -= 1
            return
        self._flush()
        if text == "\0":
            self._paragraph()
        elif not self._now.skips and not self._now.hidden:
            (self._aside if self._now.into else self._pieces).append(text)

    def _flush(self) -> None:
        if self._bytes:
            text = self._bytes.decode(self._fonts.get(self._now.font, self._codec), "replace")
            (self._aside if self._now.into else self._pieces).append(text)
            self._bytes.clear()

    def _word(self, word: bytes, value: int | None, star: bool) -> None:
        if word == b"u" and value is not None:
            self._unicode(value)
            return
        self._flush()
        now = self._now
        if now.skips:
            return
        if word in _SKIPPED or (star and word not in _READ_ANYWAY):
            self._now = replace(now, skips=True)
        elif word in (b"fonttbl", b"stylesheet", b"info", b"fldinst") or (now.into and word in _FACTS | _DATES):
            self._flush()
            self._aside.clear()
            self._now = replace(now, into=word)
        elif now.into:
            self._word_in_destination(word, value)
        elif word in _CHARACTERS:
            self._put(_CHARACTERS[word])
        else:
            self._layout(word, value)

    def _unicode(self, value: int) -> None:
        code = value + 0x10000 if value < 0 else value
        self._flush()
        if not self._now.skips and not self._now.hidden and 0 < code < 0x110000:
            into = self._aside if self._now.into else self._pieces
            # Characters outside of the first plane come in two halves.
            if 0xDC00 <= code < 0xE000 and into and len(into[-1]) == 1 and 0xD800 <= ord(into[-1]) < 0xDC00:
                into[-1] = chr(0x10000 + ((ord(into[-1]) - 0xD800) << 10) + code - 0xDC00)
            else:
                into.append(chr(code))
        self._to_skip = self._now.repeats

    def _word_in_destination(self, word: bytes, value: int | None) -> None:
        """Inside of a table of fonts or styles, a field, or the facts."""
        number = value or 0
        if word == b"f" and self._now.into == b"fonttbl":
            self._now = replace(self._now, font=number)
        elif word == b"fcharset" and number in _CHARSETS and len(self._fonts) < 10_000:
            self._fonts[self._now.font] = _CHARSETS[number]
        elif word in (b"s", b"cs", b"ds") and self._now.into == b"stylesheet":
            self._style = number if word == b"s" else -1
            self._aside.clear()
        elif word in (b"yr", b"mo", b"dy", b"hr", b"min") and self._now.into in _DATES:
            self._date[word] = number

    def _end_aside(self, ended: _Group) -> None:
        text = "".join(self._aside).strip()
        if ended.into == b"fldinst":
            words = text.split('"')
            if words[0].strip() == "HYPERLINK" and len(words) > 1:
                self._builder.link(words[1])
        elif ended.into in _FACTS:
            self._builder.facts(**{_FACTS[ended.into]: text})
        elif ended.into in _DATES and (date := _iso(self._date)):
            self._builder.facts(**{_DATES[ended.into]: date})
            self._date = {}
        self._aside.clear()

    def _end_style(self) -> None:
        found = _HEADING.search("".join(self._aside).lower()[:200])
        if found and self._style >= 0 and len(self._levels) < 10_000:
            self._levels[self._style] = int(found[1])
        self._aside.clear()

    def _layout(self, word: bytes, value: int | None) -> None:
        if word == b"par" or word == b"sect" or word == b"page":
            self._paragraph()
        elif word == b"pard":
            self._level, self._style, self._in_table, self._is_item = 0, 0, False, False
        elif word == b"intbl":
            self._in_table = True
        elif word == b"s":
            self._level = self._levels.get(value or 0, 0)
        elif word == b"outlinelevel" and value is not None and 0 <= value < 9:
            self._level = value + 1
        elif word == b"ls":
            self._is_item = True
        elif word in (b"trowd", b"trhdr", b"cell", b"nestcell", b"row", b"nestrow"):
            self._cell_word(word)
        elif word == b"f":
            self._now = replace(self._now, font=value or 0)
        elif word == b"uc":
            self._now = replace(self._now, repeats=max(0, min(value or 0, 100)))
        elif word in (b"v", b"deleted"):
            self._now = replace(self._now, hidden=value != 0)
        elif word == b"plain":
            self._now = replace(self._now, hidden=False)
        elif word == b"ansicpg" and value:
            self._codec = _codec(value)
        elif word == b"mac":
            self._codec = "mac-roman"

    def _cell_word(self, word: bytes) -> None:
        if word == b"trowd":
            self._row_is_header = False
        elif word == b"trhdr":
            self._row_is_header = True
        elif word in (b"cell", b"nestcell"):
            table = self._open_table()
            table.add(self._take())
            table.end_cell()
            table.start_cell()
        elif self._table is not None:
            if self._row_is_header:
                self._table.mark_header()
            self._table.start_row()

    def _open_table(self) -> OpenTable:
        if self._table is None:
            self._table = OpenTable()
            self._table.start_row()
            self._table.start_cell()
        return self._table

    def _take(self) -> str:
        self._flush()
        text = "".join(self._pieces)
        self._pieces.clear()
        return text

    def _paragraph(self) -> None:
        text = self._take()
        if self._in_table:
            self._open_table().add(text)
            return
        if not text.strip():
            return
        self._end_table()
        for line in text.split("\n"):
            self._builder.paragraph(line, self._level, "- " if self._is_item and not self._level else "")

    def _end_table(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            table.rows = [row for row in table.rows if row]
            table.write(self._builder)


def _codec(number: int) -> str:
    name = {65001: "utf-8", 10000: "mac-roman", 936: "gbk"}.get(number, f"cp{number}")
    try:
        codecs.lookup(name)
        return name
    except LookupError:
        return "cp1252"


def _iso(date: dict[bytes, int]) -> str:
    year, month, day = date.get(b"yr", 0), date.get(b"mo", 0), date.get(b"dy", 0)
    if not (1900 < year < 2200 and 0 < month < 13 and 0 < day < 32):
        return ""
    return f"{year:04}-{month:02}-{day:02}T{date.get(b'hr', 0) % 24:02}:{date.get(b'min', 0) % 60:02}:00"
