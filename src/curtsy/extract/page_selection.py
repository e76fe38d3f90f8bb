"""Select the pages and documents of a site for a record: by the patterns of its schema, or by a page's role.

A page's role is derived from the words of its path, then from its title and the text of links to it, in English,
German, French, Spanish, Italian and Dutch, and in part in others. Documents do not compete with pages: a report adds to
the page that links to it. The folder of a document says little about it, so its depth does not count. Pure: nothing is
fetched or parsed.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from curtsy.content.documents.sniff import EXTENSIONS
from curtsy.grounding.schema import Schema
from curtsy.grounding.schema_hints import ROLES, compiled

#: role -> names of its pages
_PHRASES: dict[str, tuple[str, ...]] = {
    role: tuple(phrases)
    for role, phrases in tomllib.loads((Path(__file__).parent / "roles.toml").read_text("utf-8")).items()
}
_HOME = frozenset(("", "index", "home", "default", "start", "startseite", "accueil", "inicio", "welcome"))
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][a-z]{2})?")
_SUFFIX = re.compile(r"\.(?:html?|php|aspx?|jsp|shtml)$")
_SEPARATOR = re.compile(r"(?<!\s)\s++[|–—·:•-]\s++|(?:(?<!\s)\s++)?[|｜»·•・]\s*+")
#: Japanese has no spaces between words
_UNSPACED = "\u3041-\u3096\u30a1-\u30ff\u4e00-\u9fff"
#: `/la-maison`, `/the-firm`: about the organization, if no page says so more clearly
_THE_HOUSE = re.compile(
    r"(?:the|la|le|les|l|el|il|die|der|das|het|de) (?:firm|house|farm|school|trust|museum|studio|workshop|maison|ferme|"
    r"ecole|atelier|domaine|fondation|association|casa|finca|bodega|escuela|fundacion|asociacion|taller|fabrica|fattoria|cantina|"
    r"scuola|fondazione|haus|klinik|schule|stiftung|werkstatt|brauerei|manufaktur|genossenschaft|hof|winkel|fabriek|stichting)"
)
_NOT_A_WORD = re.compile(rf"[^a-z0-9{_UNSPACED}]+")
#: marks that make another letter of a kana
_VOICED = "\u3099\u309a"
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
#: pages with fewer points do not have the role
ENOUGH = 3.0
#: the role of a page without a name that is known
OTHER = "other"
_NAMED = ROLES - {OTHER}
#: a site with no more pages than this is read as a whole
_FEW = 10
#: maximum number of pages of a role; claims are often spread over several pages
_BEST = {"claims": 3}
_BEST_FILES = {"claims": 3, "report": 3}
#: words in the name of a document: `2024-annual-report-of-alder-trust-en`
_MOST_FILE_WORDS = 10
MAX_PAGES = 20


class Candidate(NamedTuple):
    """A page of a site, before it is read."""

    url: str
    title: str | None = None
    #: the text of a link to the page
    label: str | None = None
    #: it is a document: a PDF, an office file, ...
    is_file: bool = False


def choose(schema: Schema, candidates: Sequence[tuple[str, str | None] | Candidate]) -> list[str]:
    """Return the URLs for the record of a site, most relevant first; at most 20.

    For each role these are the best pages and the best documents; for a pattern, all that match. If no page matches,
    the home page is used, or the page nearest to it.
    """
    pages = [Candidate(*one) for one in candidates]
    wanted = schema.pages or ("home", *_PHRASES)
    chosen: dict[str, None] = {}
    for one in wanted:
        chosen |= dict.fromkeys(_found(one, pages))
    if not schema.pages:
        chosen |= dict.fromkeys(page.url for page in sorted(pages, key=_nearness))
    # Pages before documents: the values of a site's own pages are preferred.
    files = {page.url for page in pages if page.is_file}
    chosen = dict.fromkeys(sorted(chosen, key=files.__contains__))
    if not chosen and pages and not any(one not in ROLES for one in wanted):
        chosen[min(pages, key=_nearness).url] = None
    return list(chosen)[:MAX_PAGES]


def _found(wanted: str, pages: Sequence[Candidate]) -> list[str]:
    if wanted == OTHER:
        return _rest_of_small(pages)
    return _best(wanted, pages) if wanted in ROLES else [page.url for page in pages if matches(wanted, page.url)]


def _rest_of_small(pages: Sequence[Candidate]) -> list[str]:
    """All pages of a site with few of them: it calls them what it likes, `Soil and hedges`, `Write or ring`."""
    read = [page for page in pages if not page.is_file]
    return [page.url for page in sorted(read, key=_nearness)] if len(read) <= _FEW else []


def fits(wanted: Sequence[str], url: str, roles: frozenset[str]) -> bool:
    """Return whether a page has one of the roles or matches one of the patterns; True if none are given."""
    return not wanted or any(one in roles if one in ROLES else matches(one, url) for one in wanted)


def applies(schema: Schema, url: str, title: str | None = None, *, is_file: bool = False) -> bool:
    """Return whether a schema with one record per page applies to this page or document."""
    return not schema.pages or fits(schema.pages, url, roles_of(url, title, is_file=is_file))


def roles_of(url: str, title: str | None = None, label: str | None = None, *, is_file: bool = False) -> frozenset[str]:
    """Return the roles of a page, as far as its URL and title show them."""
    page = Candidate(url, title, label, is_file)
    named = frozenset(role for role in _NAMED if score(role, page) >= ENOUGH)
    return named or frozenset(() if is_file else (OTHER,))


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> Any:
    return compiled("^" + ".*".join(re.escape(part) for part in pattern.split("*")) + "$")


def matches(pattern: str, url: str) -> bool:
    """`*` matches any characters; a pattern that begins with `/` applies to the path, others to the whole URL.

    >>> matches("/about*", "http://a.test/about-us")
    True
    """
    return _glob(pattern).match(_path(url) if pattern.startswith("/") else url) is not None


def _best(role: str, pages: Sequence[Candidate]) -> list[str]:
    read = [page for page in pages if not page.is_file]
    files = [page for page in pages if page.is_file]
    return _ranked(role, read)[: _BEST.get(role, 1)] + _ranked(role, files)[: _BEST_FILES.get(role, 1)]


def _ranked(role: str, pages: Sequence[Candidate]) -> list[str]:
    scored = sorted(((score(role, page), page.url) for page in pages), key=lambda one: (-one[0], len(one[1]), one[1]))
    return [url for points, url in scored if points >= ENOUGH]


def _nearness(page: Candidate) -> tuple[int, int, str]:
    return len(_segments(page.url)), len(page.url), page.url


def score(role: str, page: Candidate) -> float:
    """Return how well a page matches a role that has names; less than 3: not at all.

    A path with exactly the name gets 10 points, one with the words among others 6, a parent 5; a title or link with
    exactly the name 5, one with the words 2. Each deeper level costs 2, a query 1. For a document, which may be in any
    folder, level and query cost nothing.
    """
    segments = _segments(page.url)
    query = bool(urlsplit(page.url).query)
    if page.is_file:
        return _file_points(page, segments, _PHRASES[role]) if role in _PHRASES else 0.0
    if role == "home":
        return 10.0 if not query and all(segment in _HOME for segment in segments) else 0.0
    phrases = _PHRASES[role]
    points = _path_points(segments, phrases)
    said = [_words(text) for text in (page.title, page.label) if text]
    if role == "about" and not points and _is_house([*segments[-1:], *(one[0] for one in said if one)]):
        points = ENOUGH
    points += max((_text_points(text, phrases) for text in said), default=0.0)
    return points - 2.0 * max(len(segments) - 1, 0) - query


def _is_house(names: Sequence[str]) -> bool:
    return any(_THE_HOUSE.fullmatch(name) for name in names)


def _file_points(page: Candidate, segments: list[str], phrases: tuple[str, ...]) -> float:
    name, _, ending = (segments[-1] if segments else "").rpartition(" ")
    name = name if name and ending in EXTENSIONS else f"{name} {ending}".strip()
    points = 10.0 if name in phrases else 6.0 if len(name.split()) <= _MOST_FILE_WORDS and _has(name, phrases) else 0.0
    said = [part for text in (page.title, page.label) if text for part in _words(text)]
    if any(part in phrases for part in said):
        return points + 5.0
    # Titles of documents are sentences: `Sustainability report of Alder Trust for the year 2023`.
    return points + 4.0 * any(len(part.split()) <= _MOST_FILE_WORDS and _has(part, phrases) for part in said)


def _path_points(segments: list[str], phrases: tuple[str, ...]) -> float:
    if not segments:
        return 0.0
    last = segments[-1]
    if last in phrases or last.replace(" ", "") in _joined(phrases):
        return 10.0
    if len(last.split()) <= 4 and _has(last, phrases):
        return 6.0
    return 5.0 if any(segment in phrases for segment in segments[:-1]) else 0.0


@lru_cache(maxsize=64)
def _joined(phrases: tuple[str, ...]) -> frozenset[str]:
    return frozenset(phrase.replace(" ", "") for phrase in phrases)


def _text_points(parts: list[str], phrases: tuple[str, ...]) -> float:
    if any(part in phrases for part in parts):
        return 5.0
    return 2.0 if any(len(part.split()) <= 6 and _has(part, phrases) for part in parts) else 0.0


def _has(text: str, phrases: tuple[str, ...]) -> bool:
    if _IS_UNSPACED.search(text):
        return any(phrase in text for phrase in phrases if _IS_UNSPACED.search(phrase))
    return any(f" {phrase} " in f" {text} " for phrase in phrases)


def _path(url: str) -> str:
    try:
        return urlsplit(url).path or "/"
    except ValueError:
        return "/"


def _segments(url: str) -> list[str]:
    """Return the words of each path segment, without languages and file endings."""
    found = [_folded(_SUFFIX.sub("", unquote(part).lower())) for part in _path(url).split("/")[:20] if part]
    return [part for part in found if part and not _LANGUAGE.fullmatch(part)]


def _words(text: str) -> list[str]:
    """Return the parts of a title: `About us | Alder Trust` has two."""
    return [_folded(part) for part in _SEPARATOR.split(text[:300].lower())]


def _folded(text: str) -> str:
    text = text.replace("ß", "ss").replace("ü", "ue").replace("ö", "oe").replace("ä", "ae")
    split = unicodedata.normalize("NFKD", text)
    plain = "".join(char for char in split if not unicodedata.combining(char) or char in _VOICED)
    return _NOT_A_WORD.sub(" ", unicodedata.normalize("NFC", plain)).strip()
