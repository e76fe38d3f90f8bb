"""The name of the organization of a site, from several indications that must agree.

One indication (sign) is not enough: a heading may be a slogan, a copyright line may name the software, structured data
may name the author of the theme. Signs that agree, and a name that the domain repeats, count.

    claims     the name, with the place of its best sign; none if no name is certain
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.extract.sources import PageSources
from curtsy.rules.urls import registrable_domain

#: points that make a name certain
ENOUGH = 4
_DOMAIN = 2
_MAX_WORDS = 8
_MAX_CHARS = 80
#: characters of a name with its description
_MAX_DESCRIBED = 500
_MIN_SHARED = 4
#: signs that name the organization as such
_STATED = frozenset(("copyright", "founded", "welcome", "website"))
_LATIN = re.compile(r"[a-zà-öø-ÿ]")
#: of a Japanese sentence, not of a name
_PARTICLE = re.compile(r"[をへ、]")
_SEPARATOR = re.compile(r" [|–—·•»:-] |: | ?[|»·•｜] ?")
_BY = re.compile(
    r"(?:powered|designed|built|made|created|developed|website|site|theme|webdesign|hosting|hosted|diseño|conception|realisation|réalisation|umsetzung)\b"
    r"[^.|·•]{0,20}$",
    re.IGNORECASE,
)
_COPYRIGHT = re.compile(
    r"(?:©|\(c\)|copyright)\s{0,3}(?:©\s{0,3})?(?:\d{4}\s{0,3}(?:[-–]\s{0,3}\d{4})?,?\s{0,3})?(?:by\s)?"
    r"([^\W\d_][^.\n|©·•]{1,80}?)"
    r"(?=\.|\||·|•|\n|,? (?:all rights|alle rechte|tous droits|todos los|tutti i|powered|designed|built|made|site by|"
    r"website by)|$)",
    re.IGNORECASE,
)
_WELCOME = re.compile(
    r"\b(?:welcome to|willkommen bei(?: der| dem)?|bienvenue chez|bienvenidos a|benvenuti (?:in|a)|welkom bij) "
    r"([^.!?\n,]{2,80})[.!]",
    re.IGNORECASE,
)
_FOUNDED = re.compile(
    r"(?:^|[.!?\n] ?)([^\W\d_a-z][^.!?\n,]{1,60}?) (?:was (?:founded|established|created)|is an? |wurde \d{4}|"
    r"ist eine? |a été fondée?|est une? |fue fundad[ao]|es una? )"
)
_LEGAL = re.compile(
    r",? (?:gmbh(?: & co\.? kg)?|ag|e\.? ?v\.?|kg|ug|ltd\.?|limited|inc\.?|llc|plc|corp\.?|co\.?|s\.?a\.?r?\.?l?\.?|"
    r"s\.?l\.?|s\.?p\.?a\.?|b\.?v\.?|a/s|ab|oy|as|eg|ggmbh|"
    r"sp\. ?z ?o\.? ?o\.?|s\.r\.o\.|a\.s\.|d\.o\.o\.|kft\.?)$|株式会社|有限会社|合同会社",
    re.IGNORECASE,
)
_GENERIC = frozenset(
    ("home", "homepage", "start", "startseite", "accueil", "inicio", "welcome", "willkommen", "bienvenue", "about",
     "about us", "über uns", "ueber uns", "a propos", "à propos", "contact", "contact us", "kontakt", "contacto",
     "impressum", "imprint", "news", "blog", "shop", "index", "main page", "untitled", "sustainability",
     "nachhaltigkeit", "engagements", "sostenibilidad", "our story", "who we are", "qui sommes-nous", "menu", "privacy",
     "login", "search", "official site", "official website", "all rights reserved", "copyright", "会社概要",
     "お問い合わせ", "ホーム")
)  # fmt: skip


_WORD = re.compile(r"[\w'’&!]+(?:[.-]\w+)*")
_PARTED = re.compile(r"[,|:;()@]| [-–—·•] ")
_LINK = re.compile(
    r"\b(?:from|at|by|on|with|welcome to|von|bei|willkommen bei|chez|bienvenue (?:chez|sur)|en|con|bij|hos)\s$",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"\s(?:official|offizielle|officiel|sitio oficial|home ?page|website|web site)\b", re.IGNORECASE)
_FUNCTION_WORDS = frozenset(
    ("of", "for", "and", "the", "a", "an", "in", "on", "to", "&", "de", "del", "della", "di", "du", "des", "la", "le",
     "les", "los", "las", "el", "y", "et", "und", "für", "der", "die", "das", "e", "i", "o", "zu", "am", "im", "van",
     "voor", "och", "og", "pro", "na", "w", "z", "do")
)  # fmt: skip


class _Sign(NamedTuple):
    """A name, where it is, and its points."""

    name: str
    kind: str
    points: int
    source: Source
    quote: str


def claims(path: str, pages: Sequence[PageSources]) -> list[Claim]:
    """Return the name of the site's organization for the leaf `path`, best form first; empty if it is not certain."""
    host = urlsplit(pages[0].url).hostname or "" if pages else ""
    signs = [one._replace(name=without_description(one.name, host)) for one in _signs(pages)]
    signs = [one for one in signs if _is_name(one.name)]
    groups: dict[str, list[_Sign]] = {}
    for one in signs:
        groups.setdefault(_key(one.name), []).append(one)
    if not groups:
        return []
    scores = {key: _score(key, many, host) for key, many in groups.items()}
    fit = [key for key in groups if scores[key] >= ENOUGH and _is_confirmed(key, groups[key], host)]
    if not fit:
        return []
    best = max(fit, key=lambda key: (scores[key], len(groups[key])))
    chosen = sorted(groups[best], key=lambda one: (-one.points, len(one.name)))
    return [
        Claim(path=path, value=one.name, rung=Rung.SELECTOR, source=one.source, quote=one.quote) for one in chosen[:6]
    ]


def is_plain(name: str, pages: Sequence[PageSources]) -> bool:
    """Return whether a name has no description of what the site offers."""
    host = urlsplit(pages[0].url).hostname or "" if pages else ""
    return without_description(name, host) == name


def is_certain(name: str, pages: Sequence[PageSources]) -> bool:
    """Return whether the signs of the site, or its domain, confirm a name from structured data."""
    key = _key(name)
    host = urlsplit(pages[0].url).hostname or ""
    return is_of_domain(key, host) or any(_key(one.name) == key for one in _signs(pages) if one.kind != "copyright")


def without_description(name: str, host: str) -> str:
    """Return the words that the domain repeats, if what is around them describes what the site offers.

    >>> without_description("Unique personalized gifts from Things Remembered", "www.thingsremembered.test")
    'Things Remembered'
    >>> without_description("Purdue University", "www.purdue.test")
    'Purdue University'
    """
    if len(name) > _MAX_DESCRIBED:
        return name
    words = [found.span() for found in _WORD.finditer(name)]
    wanted = {_squeezed(host.removeprefix("www.")), _squeezed((registrable_domain(host) or host).partition(".")[0])}
    for first in range(len(words)):
        for last in range(first, min(first + _MAX_WORDS, len(words))):
            start, end = words[first][0], words[last][1]
            if not wanted.isdisjoint(_spellings(name[start:end])) and _describes(
                name[:start], name[start:end], name[end:]
            ):
                return name[start:end]
    return name


def _spellings(name: str) -> set[str]:
    """A domain spells `&` as a word, or leaves it out."""
    return {_squeezed(name.replace("&", word)) for word in ("", "and", "und", "et", "y")}


def _describes(before: str, kept: str, after: str) -> bool:
    """Return whether the words around a name are a description: separators, common nouns, `official site`."""
    after = _LEGAL.sub("", after)
    if "." in kept.strip(".") and (before or after).strip():
        return True  # `Books and maps von kartenhaus.de`
    if _PARTED.search(after) or _PARTED.search(before) or _LINK.search(before) or _SUFFIX.match(after):
        return True
    said = [word for word in _WORD.findall(f"{before} {after}") if word.casefold() not in _FUNCTION_WORDS]
    return any(word[0].islower() for word in said)


def _is_written_as_name(name: str) -> bool:
    """`Harbour Water Trust`, `Solarwerk Süd e.V.`; not `Light for all`. A script without capital letters has none."""
    if _LEGAL.search(name):
        return True
    words = [word for word in _WORD.findall(name) if word.casefold() not in _FUNCTION_WORDS]
    return bool(words) and all(word[0].isupper() for word in words)


def _is_confirmed(key: str, signs: Sequence[_Sign], host: str) -> bool:
    """A slogan may be in all titles, and in `og:site_name`: a name has a word of the domain, or is in a sentence."""
    if any(one.kind in _STATED or _is_written_as_name(one.name) for one in signs) or is_of_domain(key, host):
        return True
    if not key.isascii() and not _LATIN.search(key):
        return _PARTICLE.search(key) is None  # the domain spells it in other letters
    label = _squeezed((registrable_domain(host) or host).partition(".")[0])
    spelled = (key, spelled_out(key))
    words = [_squeezed(word) for one in spelled for word in one.split() if word not in _FUNCTION_WORDS]
    initials = "".join(word[0] for word in words[: len(words) // 2] if word)
    return (len(initials) > 1 and label.startswith(initials)) or any(
        len(word) >= _MIN_SHARED and (word in label or label in word) for word in words
    )


def _score(key: str, signs: Sequence[_Sign], host: str) -> int:
    """The best sign of each kind counts; titles of several pages count once more."""
    kinds = {kind: max(one.points for one in signs if one.kind == kind) for kind in {one.kind for one in signs}}
    titled = len({one.source.page for one in signs if one.kind == "title"})
    return sum(kinds.values()) + (2 if titled > 1 else 0) + (_DOMAIN if is_of_domain(key, host) else 0)


def is_of_domain(key: str, host: str) -> bool:
    """Return whether the domain repeats the name, or its initials."""
    label = _squeezed((registrable_domain(host) or host).partition(".")[0])
    return any(_is_of_label(one, label) for one in {key, spelled_out(key)})


def spelled_out(text: str) -> str:
    """Return the text as domains spell it: `bäckerei` as `baeckerei`."""
    return text.replace("ä", "ae").replace("ö", "oe").replace("ü", "ue")


def _is_of_label(key: str, label: str) -> bool:
    name = _squeezed(key)
    if not label or not name:
        return False
    initials = "".join(word[0] for word in key.split() if word)
    if min(len(label), len(name)) >= _MIN_SHARED and (label in name or name in label):
        # `Wall Decor` is a word of walldecorandhomeaccents.test, `Acme` a small part of a long heading.
        return len(name) >= len(label) / 2 and len(label) >= len(name) / 5
    return name == label or (len(initials) >= 3 and initials == label)


def _signs(pages: Sequence[PageSources]) -> Iterator[_Sign]:
    for page in pages:
        yield from _titles(page)
        yield from _meta(page)
        yield from _texts(page)


def _titles(page: PageSources) -> Iterator[_Sign]:
    if not page.title:
        return
    source = Source(SourceKind.ATTRIBUTE, page.page, page.url, page.title, "css:title")
    parts = [part.strip() for part in _SEPARATOR.split(page.title)]
    for part in dict.fromkeys(parts):
        # Beside the name of a page (`About us`), the rest is the name of the site.
        alone = len(parts) > 1 and all(_is_generic(one) for one in parts if one != part)
        yield _Sign(part, "title", ENOUGH if alone else 2, source, page.title)


def _meta(page: PageSources) -> Iterator[_Sign]:
    for at, entry in enumerate(page.data):
        data = entry.get("data")
        if not isinstance(data, dict):
            continue
        for key in ("og:site_name", "application-name"):
            if isinstance(data.get(key), str):
                yield _at(page, f"/{at}/data/{key}", data[key], "meta", 3)
        for pointer, one in _members(data, f"/{at}/data"):
            if _type_of(one) == "WebSite" and isinstance(one.get("name"), str):
                yield _at(page, f"{pointer}/name", one["name"], "website", 3)


def _at(page: PageSources, pointer: str, name: str, kind: str, points: int) -> _Sign:
    return _Sign(name.strip(), kind, points, Source(SourceKind.STRUCTURED, page.page, page.url, name, pointer), name)


def _members(data: dict[str, Any], pointer: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield pointer, data
    graph = data.get("@graph")
    for at, one in enumerate(graph if isinstance(graph, list) else []):
        if isinstance(one, dict):
            yield f"{pointer}/@graph/{at}", one


def _type_of(one: dict[str, Any]) -> str:
    found = one.get("@type")
    return str(found[0] if isinstance(found, list) and found else found).rpartition("/")[2]


def _texts(page: PageSources) -> Iterator[_Sign]:
    text = page.text.text
    patterns = (("copyright", 1, _COPYRIGHT), ("founded", 1, _FOUNDED), ("welcome", 1, _WELCOME))
    for kind, points, pattern in patterns:
        if kind == "welcome" and "home" not in page.roles:
            continue
        for number, found in enumerate(pattern.finditer(text)):
            if number == 20:
                break
            if not _BY.search(text[max(0, found.start(1) - 30) : found.start(1)].rpartition("\n")[2]):
                line = text[text.rfind("\n", 0, found.start(1)) + 1 : _line_end(text, found.end(1))]
                yield _Sign(found[1].strip(), kind, points, page.text, line)
    root = None if page.document is None else page.document.tree.root
    for node in [] if root is None or "home" not in page.roles else root.css("h1")[:2]:
        heading = " ".join(node.text().split())
        yield _Sign(
            heading, "heading", 1, Source(SourceKind.ATTRIBUTE, page.page, page.url, heading, "css:h1"), heading
        )


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _is_name(name: str) -> bool:
    words = name.split()
    if (
        not 0 < len(words) <= _MAX_WORDS
        or not 2 <= len(name) <= _MAX_CHARS
        or (name[-1] in ".!?…" and not _LEGAL.search(name))
    ):
        return False
    if _is_generic(name) or not any(char.isalpha() for char in name):
        return False
    first = next((char for char in name if char.isalpha()), "a")
    return not first.islower() or len(words) == 1


def _is_generic(name: str) -> bool:
    return name.casefold().strip(" .") in _GENERIC


def _key(name: str) -> str:
    plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return _LEGAL.sub("", plain).strip(" .,") or plain


def _squeezed(text: str) -> str:
    folded = "".join(char for char in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(char))
    spelled = folded.replace("ß", "ss")
    return re.sub(r"[^\w]|_", "", spelled)
