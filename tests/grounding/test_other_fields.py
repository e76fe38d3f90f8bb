"""Quotes that say that their value belongs to another field."""

from __future__ import annotations

import pytest

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.grounding import judge
from curtsy.grounding.schema import Leaf


@pytest.mark.parametrize(
    ("path", "kind", "value", "quote", "accepted"),
    [
        ("/weight_kg", "number", 2.3, "Weight: 2.3 kg", True),
        ("/weight_kg", "number", 2.3, "Weight: 2.3 g", False),
        ("/weight_kg", "number", 40, "Breite: 40 cm", False),
        ("/founded", "integer", 1998, "Founded in 1998 at Parkweg 12", True),
        ("/founded", "integer", 1998, "Please visit us: Parkweg 1998, 10115 Berlin", False),
        ("/author", "string", "Ann Lee", "Text: Ann Lee", True),
        ("/author", "string", "Ann Lee", "Foto: Ann Lee", False),
        ("/rating", "number", 4.5, "Rating: 4.5/5", True),
        ("/rating", "number", 5, "Rating: 4.5/5", False),
        ("/price", "number", 49.9, "Was €59.90 now only €49.90", True),
        ("/price", "number", 59.9, "Was €59.90 now only €49.90", False),
        ("/phone", "string", "+49 30 1234567", "Tel: 030 1234567", True),
        ("/phone", "string", "+49 30 1234567", "Fax: 030 1234567", False),
        ("/start_date", "date", "2024-08-09", "Open from 9 to 11 August 2024", True),
        ("/start_date", "date", "2024-08-11", "Open from 9 to 11 August 2024", False),
        ("/end_date", "date", "2024-08-11", "Open from 9 to 11 August 2024", True),
    ],
)
def test_labels_and_units_of_other_fields(path: str, kind: str, value: object, quote: str, accepted: bool) -> None:
    leaf = Leaf(path=path, type=kind)  # type: ignore[arg-type]
    source = Source(SourceKind.TEXT, "1", "http://a.test/", quote, language="en")
    field = judge.judge(Claim(path=path, value=value, rung=Rung.LLM, source=source, quote=quote), leaf)
    assert judge.is_grounded(field) is accepted, field.note
