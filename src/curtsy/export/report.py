"""The report of a bundle: one HTML file that needs no server and loads nothing.

Everything in it comes from pages of others. Data is a JSON block in which no `<` remains, scripts set it as text only,
and a content security policy allows exactly our own script and style, by their hashes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from curtsy.core.model import Crawl, Page
from curtsy.core.record import Record
from curtsy.core.text_layout import Part
from curtsy.export.flat import Layout, dotted
from curtsy.export.tables import iso
from curtsy.store import sources
from curtsy.store.engine import Store

_PARTS = Path(__file__).parent / "report_parts"
#: characters of a text that are kept; of a longer one, a part around each quote
_MOST_TEXT = 100_000
_AROUND = 5_000


def of_records(
    store: Store, crawl: Crawl, layout: Layout, found: Iterable[Record], facts: list[str]
) -> Iterator[bytes]:
    """The report of a crawl's records, with the texts that they cite."""
    columns = ["url", *(column.name for column in layout.columns), *(one.name for one in layout.lists)]
    texts: dict[str, str] = {}
    rows = (_record(store, record, layout, texts) for record in found)
    yield from _report(f"Records of crawl {crawl.id}", "records", columns, rows, texts, facts)


def of_pages(crawl: Crawl, found: Iterable[Page], facts: list[str]) -> Iterator[bytes]:
    """The report of a crawl without records."""
    columns = ["url", "title", "status", "fetched"]
    rows = (
        {"id": page.id, "url": page.url, "low": False, "fields": [],
         "values": [page.url, page.title, page.status, iso(page.fetched_ms)]}
        for page in found
    )  # fmt: skip
    yield from _report(f"Pages of crawl {crawl.id}", "pages", columns, rows, {}, facts)


def _record(store: Store, record: Record, layout: Layout, texts: dict[str, str]) -> dict[str, Any]:
    with store.read() as tx:
        cited = {(one.page, one.sha256): one.text for one in sources.of(tx, record.n)}
    row = layout.row(record)
    lists = [[list(item.values())[2:] for item in one.rows(record)] for one in layout.lists]
    items = ["; ".join(" ".join(map(_plain, item)) for item in found) for found in lists]
    return {
        "id": record.n,
        "url": record.url,
        "low": record.low_confidence,
        "values": [record.url, *(row[column.name] for column in layout.columns), *items],
        "fields": [_field(field, cited, texts) for field in record.fields],
    }


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def _field(field: dict[str, Any], cited: dict[tuple[str, str], str], texts: dict[str, str]) -> dict[str, Any]:
    return {
        "name": dotted(field["path"]), "value": field["value"], "verdict": field["verdict"], "by": field["rung"],
        "quotes": [_quote(one, cited, texts) for one in field.get("evidence", ())],
    }  # fmt: skip


def _quote(one: dict[str, Any], cited: dict[tuple[str, str], str], texts: dict[str, str]) -> dict[str, Any]:
    """A quote and its place in one of `texts`, in UTF-16 units as JavaScript counts."""
    part = "" if one.get("part") is None else str(Part(**one["part"]))
    where = ", ".join(filter(None, (one["source"], one["locator"], part)))
    shown = {"quote": one["quote"], "url": one["url"], "where": where}
    text = cited.get((one["page"].partition("-")[2], one["sha256"]))
    if text is None:
        return shown
    begin = 0 if len(text) <= _MOST_TEXT else max(0, one["start"] - _AROUND)
    kept = text if len(text) <= _MOST_TEXT else text[begin : one["end"] + _AROUND]
    key = f"{one['page']} {one['sha256'][:16]} {begin}"
    texts.setdefault(key, kept)
    start = _units(text[begin : one["start"]])
    return shown | {"text": key, "start": start, "end": start + _units(text[one["start"] : one["end"]])}


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _report(
    title: str, what: str, columns: list[str], rows: Iterable[dict[str, Any]], texts: dict[str, str], facts: list[str]
) -> Iterator[bytes]:
    style, script = ((_PARTS / name).read_text("utf-8") for name in ("report.css", "report.js"))
    yield _head(title, what, style, script, facts).encode()
    yield f'{{"what":{_json(what)},"columns":{_json(columns)},"records":['.encode()
    for number, row in enumerate(rows):
        yield f"{',' if number else ''}{_json(row)}".encode()
    yield f'],"texts":{_json(texts)}}}</script>\n<script>{script}</script></body></html>\n'.encode()


def _json(value: Any) -> str:
    """JSON in which nothing ends its element: only ASCII, and no `<`."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _head(title: str, what: str, style: str, script: str, facts: list[str]) -> str:
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'"
    verdicts = "".join(f"<option>{one}</option>" for one in ("supported", "derived", "judged"))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style></head><body>
<h1>{escape(title)}</h1>
{"".join(f"<p>{escape(fact)}</p>" for fact in facts)}
<div class="tools"><input id="any" type="search" placeholder="Filter" aria-label="Filter all columns">
<label>Verdict <select id="verdict"><option value="">any</option>{verdicts}</select></label>
<label><input id="low" type="checkbox"> low confidence only</label><span id="count" role="status"></span></div>
<div class="wide"><table><thead id="head"></thead><tbody id="rows"></tbody></table></div>
<div class="detail" id="detail" hidden><div id="values"></div><div><p id="place"></p><pre id="text"></pre></div></div>
<script type="application/json" id="data">"""
