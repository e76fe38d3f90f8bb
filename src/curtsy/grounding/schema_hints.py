"""Hints for finding the values of a schema, from `x-curtsy` and from a TOML file next to the schema.

    about the schema    per, pages, types, structured, selectors, allow_judged
    about a leaf        structured, selectors (or css, xpath, attribute, label, pattern directly), allow_judged, long

Leaves are named by their path, `/contact/email` or `contact.email`; a list means its items. Expressions are checked
here, so that a crawl does not fail on them later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from curtsy.core.errors import UsageError
from curtsy.grounding import patterns
from curtsy.grounding.patterns import program_size

#: roles of the pages of a site; `extract.page_selection` has their names
ROLES = frozenset(
    (
        "home",
        "about",
        "contact",
        "imprint",
        "claims",
        "report",
        "people",
        "projects",
        "news",
        "products",
        "jobs",
        "other",
    )
)
MAX_EXPRESSION = 500
MAX_PATTERN = 3_000
_MAX_SELECTORS = 40
_MAX_KEYS = 20
_MAX_PAGES = 50
#: steps of one pattern's program, and of all patterns of an untrusted schema; the worst case is this number for each
#: character of a page, which takes some seconds
MAX_PROGRAM = 10_000
MAX_OUTSIDE_PROGRAMS = 5_000
#: only separators between its parts
_TEMPLATE = re.compile(r"\{[^{}]+\}(?:[\s,;|]+\{[^{}]+\})*")
_TOP = frozenset(("per", "pages", "types", "structured", "selectors", "hints", "own", "allow_judged"))
_INNER = frozenset(
    ("structured", "selectors", "css", "xpath", "attribute", "label", "pattern", "hints", "allow_judged", "long")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Where to find a leaf. `pattern` is searched in the element's text, in the cell's text, or in the page's text."""

    css: str | None = None
    xpath: str | None = None
    #: attribute of the element; None: its text
    attribute: str | None = None
    #: pattern of a label: the value is in a table cell with such a row or column label, or is the definition of a term
    label: str | None = None
    #: the value is its group `value`, its first group, or the whole match
    pattern: str | None = None
    #: the value is the sentence with the match
    sentence: bool = False
    #: patterns that the sentence must match too
    also: tuple[str, ...] = ()
    #: patterns that the sentence must not match
    without: tuple[str, ...] = ()
    #: the sentence must be a statement of the organization about itself (`attribution`)
    own: bool = False
    #: what is said of the value must be asserted (no plan, denial, quotation), and not beside the name of another
    asserted: bool = False
    #: only for a leaf without a value after all other selectors, on any page
    fallback: bool = False
    #: a leaf that must be the subject: a value found for it, or `we`, comes directly before or after
    subject: str | None = None
    #: as in Schema.pages; empty: all
    pages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """All hints of a schema, by leaf."""

    per: Literal["page", "site"] = "page"
    pages: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    structured: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    selectors: Mapping[str, tuple[Selector, ...]] = field(default_factory=dict)
    #: leaves whose judged values are published
    judged: frozenset[str] = frozenset()
    long: frozenset[str] = frozenset()
    #: words that relate a quote to a leaf
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: leaves that must be statements of the organization about itself
    own: frozenset[str] = frozenset()


def read(marks: Mapping[str, Any], beside: Mapping[str, Any], leaves: set[str], *, trusted: bool) -> Hints:
    """Read `x-curtsy` by place, and a TOML, which has precedence. XPath is only allowed in trusted schemas."""
    top = {**_table(marks.get("", {}), "x-curtsy"), **beside}
    _known(top, _TOP, "x-curtsy")
    keys, places = _table(top.get("structured", {}), "structured"), _table(top.get("selectors", {}), "selectors")
    structured = {_leaf(name, leaves): _keys(value, name) for name, value in keys.items()}
    selectors = {_leaf(name, leaves): _selectors(value, name) for name, value in places.items()}
    listed = _table(top.get("hints", {}), "hints")
    words = {_leaf(name, leaves): _texts(value, f"{name}: hints") for name, value in listed.items()}
    judged, long = _judged(top.get("allow_judged", False), leaves), set()
    for place, mark in marks.items():
        if not place:
            continue
        leaf, mark = _leaf(place, leaves), _table(mark, place)
        _known(mark, _INNER, place)
        if "structured" in mark:
            structured.setdefault(leaf, _keys(mark["structured"], place))
        if found := _inner_selectors(mark, place):
            selectors.setdefault(leaf, found)
        if "hints" in mark:
            words.setdefault(leaf, _texts(mark["hints"], f"{place}: hints"))
        judged |= {leaf} if mark.get("allow_judged") is True else set()
        long |= {leaf} if mark.get("long") is True else set()
    for path, many in selectors.items():
        selectors[path] = tuple(_checked(selector, path, leaves, trusted) for selector in many)
    if not trusted:
        _check_work(selectors)
    return Hints(
        per=_per(top.get("per", "page")),
        pages=pages(top.get("pages", []), "x-curtsy"),
        types=_texts(top.get("types", []), "types"),
        structured=structured,
        selectors=selectors,
        judged=frozenset(judged),
        long=frozenset(long),
        words=words,
        own=frozenset(_leaf(name, leaves) for name in _texts(top.get("own", []), "own")),
    )


def pages(value: Any, place: str) -> tuple[str, ...]:
    """Check and return roles and globs."""
    found = _texts(value, f"{place}: pages")
    for one in found[:_MAX_PAGES]:
        if one not in ROLES and not one.startswith(("/", "http://", "https://", "*")):
            raise UsageError(
                f"{place}: {one!r} is neither a role ({', '.join(sorted(ROLES))}) nor a pattern such as /about*"
            )
    return found


def compiled(pattern: str) -> Any:
    return patterns.compiled(pattern, max_length=MAX_PATTERN, max_program=MAX_PROGRAM)


def _table(found: Any, name: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise UsageError(f"{name} is not a table")
    return found


def _known(table: Mapping[str, Any], known: frozenset[str], place: str) -> None:
    for key in table:
        if key not in known:
            raise UsageError(f"{place}: unknown key {key!r}. Known keys: {', '.join(sorted(known))}")


def _leaf(name: str, leaves: set[str]) -> str:
    path = name if name.startswith("/") else "/" + name.replace(".", "/")
    for one in (path, f"{path}/*"):
        if one in leaves:
            return one
    raise UsageError(f"the schema has no value {name}. It has {', '.join(sorted(leaves))[:300]}")


def _texts(value: Any, place: str, longest: int = MAX_EXPRESSION) -> tuple[str, ...]:
    many = [value] if isinstance(value, str) else value
    if not isinstance(many, list) or not all(isinstance(one, str) and 0 < len(one) <= longest for one in many):
        raise UsageError(f"{place} is not a string or a list of strings of up to {longest} characters")
    if len(many) > _MAX_PAGES:
        raise UsageError(f"{place}: more than {_MAX_PAGES} entries")
    return tuple(many)


def _keys(value: Any, place: str) -> tuple[str, ...]:
    found = _texts(value, f"{place}: structured")
    if len(found) > _MAX_KEYS:
        raise UsageError(f"{place}: more than {_MAX_KEYS} keys")
    for key in found:
        if ("{" in key or "}" in key) and not _TEMPLATE.fullmatch(key):
            raise UsageError(f"{place}: {key} is not a template such as {{city}}, {{country}} without words")
    return found


def _per(value: Any) -> Literal["page", "site"]:
    if value not in ("page", "site"):
        raise UsageError(f"invalid per: {value!r}. Use page or site")
    return cast(Literal["page", "site"], value)


def _judged(value: Any, leaves: set[str]) -> set[str]:
    if isinstance(value, bool):
        return set(leaves) if value else set()
    return {_leaf(name, leaves) for name in _texts(value, "allow_judged")}


def _inner_selectors(mark: dict[str, Any], place: str) -> tuple[Selector, ...]:
    short = {key: mark[key] for key in ("css", "xpath", "attribute", "label", "pattern") if key in mark}
    own = (_selector(short, place),) if short else ()
    return own + (_selectors(mark["selectors"], place) if "selectors" in mark else ())


def _selectors(value: Any, place: str) -> tuple[Selector, ...]:
    many = value if isinstance(value, list) else [value]
    if len(many) > _MAX_SELECTORS:
        raise UsageError(f"{place}: more than {_MAX_SELECTORS} selectors")
    return tuple(_selector(one, place) for one in many)


_SELECTOR = frozenset(one.name for one in fields(Selector))


def _selector(value: Any, place: str) -> Selector:
    if isinstance(value, str):
        return Selector(css=value)
    if not isinstance(value, dict):
        raise UsageError(f"{place}: a selector must be a table with css, xpath, label or pattern")
    _known(value, _SELECTOR, f"{place}: selector")
    for key in ("css", "xpath", "attribute", "label", "pattern", "subject"):
        if key in value and not (isinstance(value[key], str) and value[key].strip()):
            raise UsageError(f"{place}: {key} is not a string")
    for key in ("sentence", "own", "asserted", "fallback"):
        if not isinstance(value.get(key, False), bool):
            raise UsageError(f"{place}: {key} must be true or false")
    lists = {name: _texts(value.get(name, []), f"{place}: {name}", MAX_PATTERN) for name in ("also", "without")}
    lists["pages"] = pages(value.get("pages", []), place)
    return Selector(**{**value, **lists})


def _checked(selector: Selector, place: str, leaves: set[str], trusted: bool) -> Selector:
    try:
        _check_parts(selector, trusted)
        return selector if selector.subject is None else replace(selector, subject=_leaf(selector.subject, leaves))
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


def _check_work(selectors: Mapping[str, tuple[Selector, ...]]) -> None:
    patterns = {
        one
        for many in selectors.values()
        for found in many
        for one in (found.label, found.pattern, *found.also, *found.without)
        if one
    }
    if sum(program_size(compiled(pattern)) for pattern in patterns) > MAX_OUTSIDE_PROGRAMS:
        raise UsageError("the patterns are too expensive for a schema that is not in a file")


def _check_parts(selector: Selector, trusted: bool) -> None:
    named = (selector.css, selector.xpath, selector.label)
    if not any(one is not None for one in (*named, selector.pattern)):
        raise UsageError("a selector needs css, xpath, label or pattern")
    if selector.label is not None and (selector.css is not None or selector.xpath is not None):
        raise UsageError("a selector with a label cannot have css or xpath")
    if selector.css is not None and selector.xpath is not None:
        raise UsageError("a selector cannot have both css and xpath")
    if selector.attribute is not None and selector.css is None and selector.xpath is None:
        raise UsageError("attribute needs css or xpath")
    if selector.css is not None:
        _check_css(selector.css)
    if selector.xpath is not None:
        if not trusted:
            raise UsageError("xpath is only allowed in schema files; use css")
        _check_xpath(selector.xpath)
    if selector.sentence and (selector.pattern is None or any(named)):
        raise UsageError("sentence needs a pattern over the text, without css, xpath or label")
    for pattern in (selector.label, selector.pattern, *selector.also, *selector.without):
        if pattern is not None:
            compiled(pattern)


def _check_css(css: str) -> None:
    if len(css) > MAX_EXPRESSION:
        raise UsageError(f"css is longer than {MAX_EXPRESSION} characters")
    try:
        LexborHTMLParser("<p>").css(css)
    except Exception as error:
        raise UsageError(f"invalid css: {css}") from error


def _check_xpath(xpath: str) -> None:
    if len(xpath) > MAX_EXPRESSION:
        raise UsageError(f"xpath is longer than {MAX_EXPRESSION} characters")
    try:
        etree.XPath(xpath)
    except etree.XPathError as error:
        raise UsageError(f"invalid xpath: {xpath}: {error}") from error
