"""Where a value that a person gave stands in the sources of its record, if it does.

First where the record's evidence for that place of it was; then in structured data, by pointer; then what a selector or
a key named; then the text: a name where it stands, a date in its sentence, a number in one that has a word of what it
counts. A boolean stands nowhere: it is what somebody makes of a text. Of an enum the word itself is looked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from curtsy.core.claims import Claim, Field, Rung, Source, SourceKind, Verdict
from curtsy.grounding import judge
from curtsy.grounding.schema import Leaf

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s)[^.!?\n]*)*[.!?]?")
_WORD = re.compile(r"[^\W\d_]{4,}")
_NO_DIGIT = re.compile(r"\D+")
_MAX_DEPTH = 60


def grounded(word: Field, leaf: Leaf, sources: Sequence[Source], before: Sequence[Field]) -> Field:
    """A person's word, with the place where it stands; as it is where it stands nowhere.

    `before`: the fields of the record until now.
    """
    if leaf.type == "boolean" or word.verdict is not Verdict.JUDGED:
        return word
    as_text = replace(leaf, type="string", enum=()) if leaf.type == "enum" else leaf
    value = str(word.value) if leaf.type == "enum" else word.value
    for claim in _claims(word.path, value, as_text, sources, before):
        found = judge.judge(claim, as_text)
        if found.evidence:
            return replace(found, value=word.value)
    return word


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
            yield from _in_text(path, value, leaf, source)


def _claim(path: str, value: Any, source: Source, quote: str | None = None) -> Claim:
    return Claim(path=path, value=value, rung=Rung.PERSON, source=source, quote=quote)


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
    """The beginnings of its words: `employees` and `employed` are about the same."""
    return {word[:5] for word in _WORD.findall(text.casefold())}


def _pointers(text: str, value: Any) -> Iterator[str]:
    """Of the places of a JSON document that say just this."""
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
            yield from _leaves(inner, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}", depth + 1)
    elif isinstance(node, list):
        for place, inner in enumerate(node):
            yield from _leaves(inner, f"{pointer}/{place}", depth + 1)
    else:
        yield pointer, node
