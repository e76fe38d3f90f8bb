"""Reads JSON as pages write it.

The text is split into tokens once. What JSON does not allow between tokens is left out: comments, CDATA marks, commas
before a closing bracket, semicolons. Nothing is guessed within a value: an unfinished text or number, a missing value
or a wrong bracket makes the whole value unreadable. Every step takes time in proportion to the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any

_MAX_DEPTH = 100
_MAX_COMMENT = 2_000
_TOKEN = re.compile(
    r"""(?P<blank>[\s\ufeff\u200b\0]++)
    |(?P<cdata>(?:/[/*][ \t]*+)?<!\[CDATA\[(?:[ \t]*+\*/)?|(?:/[/*][ \t]*+)?\]\]>(?:[ \t]*+\*/)?)
    |(?P<html><!--|(?://[ \t]*+)?-->)
    |(?P<comment>//[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)
    |(?P<text>"(?:[^"\\]++|\\.)*+")
    |(?P<word>-?[0-9][0-9.eE+-]*+|true(?![a-zA-Z])|false(?![a-zA-Z])|null(?![a-zA-Z]))
    |(?P<open>[{\[])|(?P<close>[}\]])|(?P<comma>,)|(?P<colon>:)|(?P<semicolon>;)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\(.)', re.DOTALL)
_CONTROL = re.compile(r"[\0-\x1f]")
_PAIR = {"{": "}", "[": "]"}


def repaired(source: str) -> tuple[list[Any], tuple[str, ...]]:
    """Return the values in the text and what was repaired, as short stable words. Nothing if it cannot be read."""
    scan = _Scan(source)
    values = scan.values()
    # Where a quote is written as one, an entity is part of a text.
    if not values and "&" in source and '"' not in source:
        scan = _Scan(unescape(source))
        if values := scan.values():
            scan.repairs["entities"] = None
    return values, tuple(scan.repairs)


@dataclass
class _Scan:
    source: str
    repairs: dict[str, None] = field(default_factory=dict)
    _tokens: list[str] = field(default_factory=list)
    _kinds: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _values: list[Any] = field(default_factory=list)

    def values(self) -> list[Any]:
        at = 0
        while (found := _TOKEN.match(self.source, at)) is not None:
            at = found.end()
            kind = found.lastgroup or ""
            if kind == "html":
                at = self._html_comment(found[0], at)
            elif kind in ("cdata", "comment", "semicolon"):
                self._note(kind)
            elif kind == "blank":
                if not found[0].isspace():
                    self._note("invisible_characters")
            elif not self._take(kind, found[0]):
                return self._values
        if at == len(self.source):
            self._end()
        elif not self._open and self._values:
            self._note("text_after")
        return self._values

    def _note(self, repair: str) -> None:
        self.repairs[repair] = None

    def _html_comment(self, mark: str, at: int) -> int:
        """Skip a comment; of one that contains JSON, only its marks."""
        self._note("comment")
        if mark != "<!--":
            return at
        end = self.source.find("-->", at, at + _MAX_COMMENT)
        comment = self.source[at:end]
        return at if end < 0 or "{" in comment or "[" in comment else end + 3

    def _take(self, kind: str, token: str) -> bool:
        """Take a token; False: nothing after it can be read."""
        if kind == "open":
            if len(self._open) == _MAX_DEPTH:
                return False
            self._open.append(_PAIR[token])
        elif kind == "comma":
            if not self._open or (self._kinds and self._kinds[-1] in ("comma", "open")):
                self._note("comma")
                return True
        elif kind == "close":
            return self._close(token)
        if not self._open:
            return False
        self._append(kind, self._text(token) if kind == "text" else token)
        return True

    def _append(self, kind: str, token: str) -> None:
        self._kinds.append(kind)
        self._tokens.append(token)

    def _close(self, token: str) -> bool:
        if not self._open:
            self._note("extra_bracket")
            return bool(self._values)
        if self._open.pop() != token:
            return False
        self._drop_comma()
        self._append("close", token)
        if not self._open:
            self._finish()
        return True

    def _drop_comma(self) -> None:
        if self._kinds and self._kinds[-1] == "comma":
            self._note("comma")
            self._kinds.pop()
            self._tokens.pop()

    def _end(self) -> None:
        """Close what is open at the end, if no value is cut off: a number may have had more digits."""
        if self._open and self._kinds[-1] in ("text", "close", "comma"):
            self._drop_comma()
            self._note("missing_bracket")
            self._tokens += reversed(self._open)
            self._finish()

    def _finish(self) -> None:
        # Blanks keep apart what is apart in the page: `1 2` is not 12.
        text = " ".join(self._tokens)
        self._tokens, self._kinds, self._open = [], [], []
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return
        if self._values:
            self._note("several_values")
        self._values.append(value)

    def _text(self, token: str) -> str:
        if _CONTROL.search(token) is not None:
            self._note("control_characters")
        if "\\" not in token:
            return token
        return _ESCAPE.sub(self._escape, token)

    def _escape(self, found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        self._note("escape")
        return found[1]
