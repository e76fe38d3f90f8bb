"""How a text calls the organization of a site, and whether it names another of the same kind.

    names_in     words of a text that the domain of its site repeats, and `the university` of Alder University
    names_like   whether a text names another of the kind: `Norbury Town Council`, for a council

Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from urllib.parse import urlsplit

from curtsy.grounding.kinds import head_of, is_kind, is_kind_of
from curtsy.grounding.subject import is_known, is_small
from curtsy.rules.urls import registrable_domain

_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
#: `the museum`, not `the museum of Bath`
_THE_ONE = re.compile(
    r"\b(?:the|das|die|der|le|la|el|il|het|de) (?P<noun>[^\W\d_]{4,30})\b"
    r"(?! (?:of|in|at|von|aus|de|du|di|d[’']|te) ?(?-i:[A-ZÀ-ÖØ-Þ]))",
    re.IGNORECASE,
)
#: two to five capitalized words: `Norbury Town Council`, `Musée du Jouet`
_BODY = re.compile(
    r"\b[A-ZÀ-ÖØ-Þ][\w'’&-]{1,30}"
    r"(?: (?:(?:of|de|du|la|des|del|di|van|von|am|an|der|&) ){0,2}[A-ZÀ-ÖØ-Þ][\w'’&-]{1,30}){1,4}"
)
#: the name after a noun for a kind of organization: `du Port`, `De Haven`
_NEXT_NAME = re.compile(
    r" (?:(?:of|de|du|des|di|del|della|van|von|zu|the|la|le|les|der|den|"
    r"De|Het|La|Le|Les|El|Los|Las) |[dl]['’]){0,2}([A-ZÀ-ÖØ-Þ][\w'’-]+)"
)
_MIN_NAME = 4


def names_in(text: str, url: str, known: Sequence[str] = ()) -> list[str]:
    """Return the words of a text that the domain of a site repeats: its name, and `the museum` of marlowmuseum.test.

    `known` are names of the organization: the text may call it by the noun in one, `the university`.

    >>> names_in("Nor\u00e9vale recycles glass.", "https://www.norevale.test/")
    ['Nor\u00e9vale']
    """
    host = urlsplit(url).hostname or ""
    label = _squeezed((registrable_domain(host) or host.removeprefix("www.")).partition(".")[0])
    found = [one for one in _WORD.finditer(text) if one[0][0].isupper() and len(one[0]) >= _MIN_NAME]
    names = [one[0] for one in found if _begins(label, one[0].removesuffix("'s").removesuffix("’s"))]
    names = [name for name in names if not is_kind(name)]
    names += [one[0] for one in found if is_kind(one[0]) and _is_named_so(one, text, label)]
    for one in _THE_ONE.finditer(text):
        is_own = label.endswith(_squeezed(one["noun"])) or is_kind_of(one["noun"], known)
        if is_own and not _names_another(text[one.end() :], label, known):
            names.append(one[0])
    return names


def _is_named_so(found: re.Match[str], text: str, label: str) -> bool:
    """`Museum De Werf` of museumdewerf.test; not `Museum De Haven`, nor a museum alone."""
    after = _NEXT_NAME.match(text, found.end())
    return _begins(label, found[0]) and after is not None and _squeezed(after[1]) in label


def _names_another(after: str, label: str, known: Sequence[str]) -> bool:
    """`die Gemeinde Unterahlen`; not `hat die Gemeinde Solaranlagen errichtet`: German writes nouns with a capital."""
    found = _NEXT_NAME.match(after)
    if found is None or is_known(found[1]) or found[1].isupper():
        return False
    return _squeezed(found[1]) not in label and not any(found[1] in name for name in known)


def _begins(label: str, word: str) -> bool:
    """`Bäckerei` is spelled `backerei` or `baeckerei` in a domain."""
    spelled = word.casefold().replace("ä", "ae").replace("ö", "oe").replace("ü", "ue")
    return label.startswith((_squeezed(word), _squeezed(spelled)))


def names_like(text: str, names: Sequence[str]) -> bool:
    """Return whether a text names another of the same kind: `Norbury Town Council`, for a council.

    >>> names_like("Norbury Council met.", ["Alder Council"]), names_like("Alder Council met.", ["Alder Council"])
    (True, False)
    """
    own = {word.casefold() for name in names for word in _WORD.findall(name)}
    for found in _BODY.finditer(text):
        words = found.group().split()
        others = [word for word in words if word.casefold() not in own and not is_kind(word)]
        others = [word for word in others if not is_small(word)]
        if others and any(is_kind(head_of(word)) and is_kind_of(head_of(word), names) for word in words):
            return True
    return False


def _squeezed(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in plain if char.isalnum())
