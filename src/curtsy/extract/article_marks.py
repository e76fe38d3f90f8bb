"""Marks of an article's elements: what their classes and attributes say they are. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from curtsy.extract.article_words import marked

_MARKS = ("class", "id", "itemprop", "rel", "data-testid", "property", "data-component", "data-qa", "data-test")
BYLINE, UPDATED, DATED, PUBLISHED = map(marked, ("byline_marks", "updated_marks", "date_marks", "published_marks"))
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: parts that are about other articles
_OTHERS = marked("other_marks")
_TIME = re.compile(r"[12][0-9]{3}-[01][0-9]-[0-3][0-9]")
MAX_DEPTH = 40
#: the address of the page of an author: `/author/nora-field`
AUTHOR_PAGE = re.compile(
    r"/(?:authors?|autore?s?|autoren|auteurs?|contributors?|columnists?|journalists?|reporters?|writers?|bylines?|by|staff|"
    r"people|profiles?|redakteure?|periodistas?)/[^/?#]",
    re.IGNORECASE,
)


class Part(NamedTuple):
    """An element that belongs to the article: its span and marks."""

    start: int
    end: int
    text: str
    marks: str
    tag: str
    #: the attribute `datetime` or `content`
    stated: str
    rel: str


def marks_of(node: LexborNode) -> str:
    return _CAMEL.sub("-", " ".join(node.attributes.get(name) or "" for name in _MARKS)).strip()


def chain(node: LexborNode, until: frozenset[int]) -> Iterator[LexborNode]:
    at: LexborNode | None = node
    for _ in range(MAX_DEPTH):
        if at is None or at.mem_id in until:
            return
        yield at
        at = at.parent


def is_other(node: LexborNode) -> bool:
    marks = f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}"
    return len(marks) > 1 and node.tag not in ("html", "body") and _OTHERS.search(marks) is not None


def is_published(part: Part) -> bool:
    return PUBLISHED.search(part.marks) is not None or "date-published" in part.marks.lower()


def is_updated(part: Part) -> bool:
    return UPDATED.search(part.marks) is not None or "date-modified" in part.marks.lower()


def stated_by(tag: str, attributes: Mapping[str, str | None]) -> str:
    """The date or name that an attribute states."""
    if tag == "abbr":
        title = attributes.get("title") or ""
        return title if _TIME.match(title) else ""
    return attributes.get("datetime") or (attributes.get("content") if attributes.get("itemprop") else "") or ""


def is_in_article(node: LexborNode) -> bool:
    at = node.parent
    for _ in range(MAX_DEPTH):
        if at is None:
            return False
        if at.tag == "article":
            return True
        at = at.parent
    return False


def ancestors(node: LexborNode) -> Iterator[int]:
    at: LexborNode | None = node
    while at is not None:
        yield at.mem_id
        at = at.parent


def lines_of(text: str) -> list[tuple[int, int]]:
    found, at = [], 0
    for line in text.split("\n"):
        if line.strip():
            found.append((at, at + len(line)))
        at += len(line) + 1
    return found


def flat(text: str) -> str:
    return " ".join(text.casefold().split())
