"""Find a value that a person gave in the sources of its record.

The order is: the place of the record's previous evidence; structured data, by pointer; what a selector or key named;
then table cells whose labels have a word of what it is; then the text. In the text, a name is searched as it is, a date
in its sentence, and a number in a sentence that has a word of what it counts. Booleans have no span: they are judgments
about a text. Of an enum, the word itself is searched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from curtsy.core.claims import Claim, Field, Rung, Source, SourceKind, Verdict
from curtsy.core.text_layout import joined
from curtsy.grounding import judge
from curtsy.grounding.json_pointer import step
from curtsy.grounding.schema import Leaf

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s)[^.!?\n]*)*[.!?]?")
_WORD = re.compile(r"[^\W\d_]{4,}")
_SEPARATOR = re.compile(r"[\s,.'’]")
_NO_DIGIT = re.compile(r"\D+")
_MAX_DEPTH = 60


def grounded(field: Field, leaf: Leaf, sources: Sequence[Source], before: Sequence[Field]) -> Field:
    """Return a person's value with its place in the sources; unchanged if it is not found.

    `before`: the previous fields of the record.
    """
    if leaf.type == "boolean" or field.verdict is not Verdict.JUDGED:
        return field
    as_text = replace(leaf, type="string", enum=()) if leaf.type == "enum" else leaf
    value = str(field.value) if leaf.type == "enum" else field.value
    for claim in _claims(field.path, value, as_text, sources, before):
        found = judge.judge(claim, as_text)
        if found.evidence:
            return replace(found, value=field.value)
    return field


def _claims(path: str, value: Any, leaf: Leaf, sources: Sequence[Source], before: Sequence[Field]) -> Iterator[Claim]:
    by_hash = {one.sha256: one for one in sources}
    for evidence in (one for field in before if field.path == path for one in field.evidence):
        if (source := by_hash.get(evidence.sha256)) is not None:
            yield _claim(path, value, replace(source, locator=evidence.locator), evidence.quote)
    named = {one.sha256: one.locator for field in before for one in field.evidence}
    for source in sources:
        if source.kind is SourceKind.STRUCTURED:
            for pointer in _pointers(source.text, value):
                yield _claim(path, value, replace(source, locator=pointer))
        elif source.kind is SourceKind.ATTRIBUTE:
            yield _claim(path, value, replace(source, locator=named.get(source.sha256, "")))
    for source in sources:
        if source.kind is SourceKind.TEXT:
            yield from _in_cells(path, value, leaf, source)
            yield from _in_text(path, value, leaf, source)


def _claim(path: str, value: Any, source: Source, quote: str | None = None) -> Claim:
    return Claim(path=path, value=value, rung=Rung.PERSON, source=source, quote=quote)


def _in_cells(path: str, value: Any, leaf: Leaf, source: Source) -> Iterator[Claim]:
    """Yield the table cells that have the value, and a label with a word of what it is."""
    about, wanted = _stems(f"{leaf.path} {leaf.description}"), _bare(value)
    for cell in source.layout.cells:
        if wanted and wanted in _bare(source.text[cell.start : cell.end]) and about & _stems(joined(cell.labels)):
            claim = _claim(path, value, source)
            yield replace(claim, span=(cell.start, cell.end))


def _bare(value: Any) -> str:
    return _SEPARATOR.sub("", str(value)).casefold()


def _in_text(path: str, value: Any, leaf: Leaf, source: Source) -> Iterator[Claim]:
    digits = _NO_DIGIT.sub("", str(value))
    if isinstance(value, str):
        yield _claim(path, value, source)
        if not digits:
            return
    year = digits[:4] or digits
    about = None if isinstance(value, str) else _stems(f"{leaf.path} {leaf.description}")
    for found in _SENTENCE.finditer(source.text):
        sentence = found.group().strip()
        if year in _NO_DIGIT.sub("", sentence) and (about is None or about & _stems(sentence)):
            yield _claim(path, value, source, sentence)


def _stems(text: str) -> set[str]:
    """The first letters of its words: `employees` and `employed` are about the same."""
    return {word[:5] for word in _WORD.findall(text.casefold())}


def _pointers(text: str, value: Any) -> Iterator[str]:
    """Yield the pointers in a JSON document at which exactly this value is found."""
    try:
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return
    wanted = str(value).strip()
    yield from (pointer for pointer, found in _leaves(document, "", 0) if str(found).strip() == wanted)


def _leaves(node: Any, pointer: str, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(node, Mapping):
        for name, inner in node.items():
            yield from _leaves(inner, step(pointer, name), depth + 1)
    elif isinstance(node, list):
        for place, inner in enumerate(node):
            yield from _leaves(inner, f"{pointer}/{place}", depth + 1)
    else:
        yield pointer, node
