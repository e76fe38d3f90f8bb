"""U+0000 in values, quotes and sources becomes U+FFFD before grounding: spans stay exact, and databases accept it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orgs
import pytest

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.extract import record_claims
from curtsy.grounding.page_schema import extractors
from curtsy.records import user_functions
from curtsy.store import sources
from curtsy.store.engine import Store
from curtsy.store.segments import Segments

NAME = r"a lamp <\/script-ish> \u2028 \u0000 x"
OFFER = '"offers": {"@type": "Offer", "price": "5.00", "priceCurrency": "EUR"}'


def page(data: str) -> bytes:
    script = f'<script type="application/ld+json">{data}</script>'
    return f"<!doctype html><title>Lamp</title>{script}<h1>Lamp</h1><p>Some words.".encode()


@pytest.mark.parametrize("schema", ["product", "page"])
@pytest.mark.parametrize("end", ["}", ",}"], ids=["valid", "repaired"])
def test_an_escaped_zero_in_json_ld_is_replaced_in_value_quote_and_source(
    store: Store, tmp_path: Path, schema: str, end: str
) -> None:
    segments = Segments(tmp_path / "segments")
    data = f'{{"@type": "Product", "na\\u0000me": "{NAME}", "name": "{NAME}", {OFFER}{end}'
    crawl = orgs.make(store, segments, [("https://a.test/", page(data))], schema)
    orgs.run_all(orgs.parts_of(store, segments), crawl)
    (record,) = orgs.all_records(store, crawl)
    with store.read() as tx:
        texts = {one.sha256: one.text for one in sources.of(tx, record.n)}
    assert "\ufffd x" in str(record.data)
    assert "\\u0000" not in json.dumps([record.data, record.fields, record.withheld], ensure_ascii=False)
    cited = [each for one in record.fields for each in one["evidence"]]
    assert cited
    assert [texts[one["sha256"]][one["start"] : one["end"]] for one in cited] == [one["quote"] for one in cited]
    segments.close()


def test_claims_and_plain_texts_have_no_zero() -> None:
    source = Source(SourceKind.TEXT, "p", "https://a.test/", "a\0b")
    assert (source.text, source.sha256) == ("a\ufffdb", Source(SourceKind.TEXT, "p", "", "a\ufffdb").sha256)
    claim = Claim(path="/name", value={"a\0": ["\0", 1]}, rung=Rung.LLM, source=source, quote="a\0b")
    assert (claim.value, claim.quote) == ({"a\ufffd": ["\ufffd", 1]}, "a\ufffdb")
    plain = record_claims.sources_of("p", "https://a.test/a.txt", b"a\0b", "text/plain")
    assert plain.text.text == "a\ufffdb"


def test_items_of_functions_have_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_functions, "_words", lambda _: 3)
    made: dict[str, Any] = {"url": "https://a.test/", "name": "a\0b", "kept": "a\\u0000b"}
    user_functions.add_extractor("zeros", lambda _: made)
    try:
        (item,) = extractors["zeros"](Stub())  # type: ignore[arg-type]
    finally:
        del extractors["zeros"]
    assert (item["name"], item["kept"]) == ("a\ufffdb", "a\\u0000b")


class Stub:
    """A stored page, as far as functions need it."""

    class page:
        url = "https://a.test/"
