"""Pages and records as a notebook shows them. Everything from a page is escaped: nothing of it runs in the notebook."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

#: characters of a page's text, and of a value or a quote in a cell
_MOST_TEXT, _MOST_CELL = 600, 300


class Record(dict[str, Any]):
    """A record as `curtsy records` prints it. In a notebook, it is a table of its values with their evidence."""

    def _repr_html_(self) -> str:
        facts = [(name, self.get(name)) for name in ("schema", "url", "version", "low_confidence", "created")]
        columns = ("value of", "value", "verdict", "quote", "page")
        rows = [row for field in self.get("fields") or () for row in _evidence(field)]
        return _facts(facts) + _table(columns, rows)


def page_html(facts: Iterable[tuple[str, Any]], text: str) -> str:
    """The facts of a page and the beginning of its text."""
    return _facts(facts) + (f"<pre style='white-space:pre-wrap'>{_short(text, _MOST_TEXT)}</pre>" if text else "")


def _evidence(field: dict[str, Any]) -> list[list[str]]:
    """A row for each quote; a value without one has a row too."""
    shown = [escape(str(field.get("path", ""))), _cell(field.get("value")), escape(str(field.get("verdict", "")))]
    quotes = field.get("evidence") or [{}]
    return [[*shown, _short(str(one.get("quote") or "")), _link(one.get("url"))] for one in quotes]


def _facts(facts: Iterable[tuple[str, Any]]) -> str:
    return _table((), [[f"<b>{escape(name)}</b>", _cell(value)] for name, value in facts if value not in (None, "")])


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already."""
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_left, row))}</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _left(cell: str) -> str:
    return f"<td style='text-align:left'>{cell}</td>"


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return _link(value) if value.startswith(("http://", "https://")) else _short(value)
    return _short(json.dumps(value, ensure_ascii=False, default=str))


def _link(url: Any) -> str:
    """A link only for the web: another scheme could run something."""
    text = str(url or "")
    if not text.startswith(("http://", "https://")):
        return _short(text)
    return f"<a href='{escape(text)}' rel='noreferrer noopener' target='_blank'>{_short(text)}</a>"


def _short(text: str, most: int = _MOST_CELL) -> str:
    return escape(text if len(text) <= most else f"{text[: most - 3]}...")
