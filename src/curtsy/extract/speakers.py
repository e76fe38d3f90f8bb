"""Whose `we` a statement has: below the name of another, and in interviews, it does not mean the organization.

    is_name        whether a heading or a label is a name: `Brenholt`, `Weingut Moser`; not `Waste`, `Our kilns`
    is_interview   whether a heading announces an interview with others: `Five questions to Mia Holt`
    asks           whether a line addresses a person by name: `What have you done, Ms Holt?`

The form of a word does not show whether it is a name: German nouns and English titles are capitalized. These are
common words: a word that the page also writes in lower case, a word of the lists in `own_parts.toml` and
`subject.toml`, and words with the endings of nouns (`-tion`, `-ung`).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from curtsy.extract import own_parts
from curtsy.grounding import attribution

_WORD = re.compile(r"[^\W\d_]+")
_PARTICLES = frozenset(
    ("of", "and", "the", "de", "du", "la", "le", "von", "und", "et", "y", "e", "del", "di", "van", "der")
)
_MAX_WORDS = 4
_MIN_NAME = 4
#: the person to whom a question is addressed
_ADDRESSED = re.compile(
    r"(?:^|[,.] )(?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau|Monsieur|Madame|M|Mme|Señora?|Sra?|Don|Doña|Signora?|Sig|"
    r"Mevrouw|Meneer)"
    r"\.? [A-ZÀ-ÖØ-Þ][^\W\d_]{1,30}|(?:さん|先生)、",
)
_ASKED = re.compile(r"[?？]\s{0,3}$")


def is_name(text: str, own: str, title: str, common: Collection[str]) -> bool:
    """Return whether a heading is the name of another; `common` are the words that the page writes in lower case.

    >>> is_name("Brenholt", "alder", "Alder", ()), is_name("Packaging", "alder", "Alder", ())
    (True, False)
    """
    said = " ".join(text.split()).strip(" .:：")
    if not said or said in title or own_parts.is_neutral(said, own) or attribution.is_own(said):
        return False
    if own_parts.is_unspaced_body(said):
        return True
    words = _WORD.findall(said)
    if not 0 < len(words) <= _MAX_WORDS or said.endswith("?") or any(char.isdigit() for char in said):
        return False
    names = [word for word in words if word[0].isupper()]
    if not all(word in names or word in _PARTICLES for word in words) or max(map(len, words)) < _MIN_NAME:
        return False
    return all(word.casefold() not in common and not own_parts.is_topic(word) for word in names)


def is_interview(text: str, own: str) -> bool:
    """Not `Interview with our director`, nor with a name of the site."""
    if not own_parts.announces_interview(text) or attribution.is_own(text):
        return False
    return not any(own_parts.names_site(word, own) for word in _WORD.findall(text))


def asks(line: str) -> bool:
    return _ASKED.search(line) is not None and _ADDRESSED.search(line) is not None


def common_words(text: str) -> frozenset[str]:
    """Return the words that a text writes in lower case."""
    return frozenset(word for word in _WORD.findall(text) if word.islower())
