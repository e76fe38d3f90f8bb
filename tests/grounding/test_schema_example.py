"""The example of docs/reference/schemas.md does what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

from curtsy.extract import elements, record_claims
from curtsy.grounding import judge
from curtsy.grounding import schema as schemas

DOC = Path(__file__).parents[2] / "docs" / "reference" / "schemas.md"


def test_the_worked_example_finds_what_the_page_says(tmp_path: Path) -> None:
    text = DOC.read_text("utf-8").partition("## What can be extracted")[0]
    document, hints, html, record = (
        re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("json", "toml", "html", "json")
    )
    (tmp_path / "orgs.json").write_text(document[0])
    (tmp_path / "orgs.toml").write_text(hints[0])
    schema = schemas.load("orgs.json", folder=tmp_path)
    page = record_claims.sources_of("p1", "http://mend.test/about", html[0].encode(), "text/html; charset=utf-8")
    try:
        fields = judge.settle(schema, record_claims.extract(schema, [page]).claims)
    finally:
        elements.close()
    assert judge.assemble(schema, fields) == json.loads(record[1])
    assert record_claims.applies(schema, page.url, page.title)


def test_every_key_is_documented() -> None:
    from curtsy.grounding import schema_hints as hints

    text = DOC.read_text("utf-8")
    for key in sorted(hints._TOP | hints._INNER | hints._SELECTOR | hints.ROLES):
        assert f"`{key}`" in text, key
