"""Whether the place of a fact or a contact says that it is the organization's own, or leaves open whose it is.

    unclear     parts below headings that name another thing: `Where to stay`, `The mill`, `Cafe Rosa`
    names_none  whether the words before a contact are labels only: `Call us on`, not `Taxi:`

A labeled value says whose it is by its place. A list of words for others is never complete, so these are lists of
words for the organization's own. They are in `own_parts.toml`. Sentences with a subject are not judged here.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from curtsy.content.document import Document
from curtsy.extract import foreign_parts
from curtsy.grounding.patterns import compiled
from curtsy.rules.urls import registrable_domain

_WORDS: dict[str, str] = tomllib.loads((Path(__file__).parent / "own_parts.toml").read_text("utf-8"))
_WORD = re.compile(r"[^\W\d_]+")
_MIN_NAME = 4


def unclear(document: Document) -> foreign_parts.Spans:
    """Return the parts of a page whose headings name another thing than the organization; never that of an `h1`."""
    own = site_label(document.base_url)
    return foreign_parts.Spans(
        foreign_parts.below(document, lambda text: not is_neutral(text, own), but=frozenset(("h1",)))
    )


def is_neutral(heading: str, own: str) -> bool:
    """Return whether a heading may have facts or contacts of the organization with this domain below it.

    >>> is_neutral("Visit us", "alder"), is_neutral("Alder in figures", "alder"), is_neutral("The mill", "alder")
    (True, True, False)
    """
    said = " ".join(heading.split())
    if not _WORD.search(said) or _any("headings").search(said) or compiled(_WORDS["unspaced"]).search(said):
        return True
    return any(names_site(word, own) for word in _WORD.findall(said))


def names_none(text: str, own: str) -> bool:
    """Return whether all words are labels, or repeat the domain."""
    if compiled(_WORDS["unspaced"]).search(text):
        return True
    return all(_label().search(word) or names_site(word, own) for word in _WORD.findall(text))


def names_site(word: str, own: str) -> bool:
    said = _squeezed(word)
    return len(said) >= _MIN_NAME and said in own


def site_label(url: str) -> str:
    host = urlsplit(url).hostname or ""
    return _squeezed((registrable_domain(host) or host.removeprefix("www.")).partition(".")[0])


@cache
def _any(name: str) -> Any:
    edge = r"[^\p{L}\p{N}]"
    return compiled(rf"(?:^|{edge})(?:{_listed(name)})(?:{edge}|$)", max_length=8_000, case_sensitive=False)


@cache
def _label() -> Any:
    return compiled(rf"^(?:{_listed('headings')}|{_listed('labels')})$", max_length=12_000, case_sensitive=False)


def _listed(name: str) -> str:
    return "".join(line.strip() for line in _WORDS[name].splitlines()).strip("|")


def _squeezed(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in plain if char.isalnum())
