"""What the head and the headers of a page say: title, base, language, refresh, robots rules; whether a body is HTML.

Works on values that were read from the page already, so it needs no tree. Bad content never raises.
"""

from __future__ import annotations

import re

from curtsy.content.charset import decode, media_type
from curtsy.rules.urls import parse

MAX_TITLE_LENGTH = 500
_MAX_LANGUAGE_LENGTH = 35

_BLANK = "\t\n\f\r "
_REFRESH = re.compile(
    r"[\t\n\f\r ]*+([0-9]++|(?=\.))[0-9.]*+(?=[;,\t\n\f\r ]|\Z)[\t\n\f\r ]*+[;,]?+[\t\n\f\r ]*+(.*)\Z", re.DOTALL
)
_REFRESH_URL = re.compile(r"url[\t\n\f\r ]*=[\t\n\f\r ]*", re.IGNORECASE)

#: a refresh after more seconds leaves time to read the page
_AT_ONCE_S = 5
_MAX_DIGITS = 5

_HTML_TYPES = frozenset(("text/html", "application/xhtml+xml"))
_UNKNOWN_TYPES = frozenset(("", "application/octet-stream", "unknown/unknown", "application/unknown", "*/*"))
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|"
    rb"body|br|p)[\t\n\f\r />])",
    re.IGNORECASE,
)


def as_utf8(body: bytes, charset: str) -> bytes:
    """The body in UTF-8, or in another encoding if it is plain ASCII; without a byte order mark."""
    if charset == "utf-8":
        return body.removeprefix(b"\xef\xbb\xbf")
    if charset[:3] != "utf" and body.isascii() and charset not in ("iso2022_jp", "replacement"):
        return body
    return decode(body, charset).encode("utf-8", "replace")


def base_url_of(href: str | None, url: str) -> str:
    """What the links of a page are relative to: its <base href>, if that can be used."""
    if not href:
        return url
    base = parse(href, url)
    # The standard ignores these two; no other scheme can be a base of crawlable links either, but they resolve to None.
    return url if base is None or base.startswith(("data:", "javascript:")) else base


def title_of(text: str) -> str:
    return " ".join(text.split())[:MAX_TITLE_LENGTH]


def language_of(attribute: str | None) -> str | None:
    language = (attribute or "").strip()
    return language if 0 < len(language) <= _MAX_LANGUAGE_LENGTH else None


def refresh_target(attributes: dict[str, str | None]) -> str | None:
    """The URL of a <meta http-equiv="refresh">, as written; None: another element, or it only reloads the page."""
    kind = attributes.get("http-equiv")
    if kind is None or kind.lower() != "refresh":
        return None
    found = _REFRESH.match(attributes.get("content") or "")
    if found is None:
        return None
    target = found[2]
    if prefix := _REFRESH_URL.match(target):
        target = target[prefix.end() :]
    if target[:1] in ("'", '"'):
        target = target[1:].partition(target[0])[0]
    return target.strip(_BLANK) or None


def is_at_once(attributes: dict[str, str | None]) -> bool:
    """Whether a refresh leaves no time to read the page."""
    found = _REFRESH.match(attributes.get("content") or "")
    # Parsing a number with very many digits would take long.
    return found is not None and len(found[1]) < _MAX_DIGITS and int(found[1] or 0) <= _AT_ONCE_S


def robots_words(content: str) -> set[str]:
    """The rules of a robots tag."""
    return set(content.lower().replace(",", " ").split())


def robots_tag(values: list[str], agent: str) -> tuple[bool, bool]:
    """(noindex, nofollow) by X-Robots-Tag lines. "agent: rules" holds for that agent only, up to the next agent."""
    noindex = nofollow = False
    agent = agent.lower()
    for value in values:
        ours = True
        for word in value.lower().split(","):
            name, colon, rule = word.partition(":")
            name = name.strip()
            # Rules that have a value of their own; the date of unavailable_after may hold commas and colons.
            if colon and name not in _RULES_WITH_VALUE and " " not in name:
                ours = name == agent
                word = rule
            if ours:
                words = robots_words(word)
                noindex = noindex or "noindex" in words or "none" in words
                nofollow = nofollow or "nofollow" in words or "none" in words
    return noindex, nofollow


_RULES_WITH_VALUE = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))


def is_html(content_type: str | None, body: bytes) -> bool:
    """Whether a body is HTML: by its content type or, without a meaningful one, by its first bytes."""
    kind = media_type(content_type)
    if kind in _HTML_TYPES:
        return True
    return kind in _UNKNOWN_TYPES and _HTML_START.match(body[:1024]) is not None
