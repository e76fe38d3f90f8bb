"""How one element's own attributes hide it, as far as they say so. Stylesheets are not read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache


class Hiding(Enum):
    NONE = "none"
    #: not displayed: what a script does when it opens something
    CLOSED = "closed"
    #: moved out of sight, transparent or without size: not for readers
    TRICK = "trick"
    #: a reveal animation begins with it: the text becomes visible when the reader gets there
    ANIMATED = "animated"
    #: for screen readers
    ASSISTIVE = "assistive"


#: of one `style`: characters, declarations, and characters of each, that are read
_MAX_STYLE = 2_000
_MAX_DECLARATIONS = 40
_MAX_VALUE = 80
_MAX_CLASS = 600
_ZERO = re.compile(r"0*+(?:\.0*+)?+(?:px|r?em|%|pt|vh|vw)?")
_NUMBER = re.compile(r"-\s*([0-9]{1,9})[0-9.]*\s*(px|r?em|%|vw|vh|pt)?")
#: beyond this, in px or in em, a box is out of sight; sliders move by less
_FAR = {"px": 900, "pt": 700, "em": 60, "rem": 60, "%": 500, "vw": 500, "vh": 500, "": 900}
_FAR_SLIDE = 5_000
_NO_SIZE = frozenset(("0", "0px", "1px", "1"))
_AWAY = frozenset(("left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top", "inset-inline-start"))
_ANIMATION = frozenset(("transform", "transition", "will-change", "animation", "translate", "scale", "rotate"))
_ANIMATED_BY = ("data-aos", "data-w-id", "data-framer-appear-id", "data-framer-name", "data-animate", "data-wow-delay")

#: class names of common stylesheets for `display: none`
_CLOSED_CLASSES = frozenset(("hidden", "hide", "is-hidden", "d-none", "display-none", "u-hidden"))
#: classes for screen readers
ASSISTIVE_CLASSES = frozenset(
    ("sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text", "screen-reader-only", "show-for-sr",
     "a11y-hidden", "element-invisible", "assistive-text", "a-offscreen", "u-visually-hidden", "VisuallyHidden")
)  # fmt: skip
#: shown again on some screens: Tailwind's `md:block`, Bootstrap's `d-md-flex`
_SHOWN_AGAIN = re.compile(
    r"(?:[a-z0-9]{1,12}:|d-(?:sm|md|lg|xl|xxl)-)(?:block|flex|grid|inline|table|contents|visible)"
)

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def hiding(tag: str, attributes: Mapping[str, str | None]) -> Hiding:
    """Return how the element's attributes hide it."""
    if "hidden" in attributes or "popover" in attributes or (tag == "dialog" and "open" not in attributes):
        return Hiding.CLOSED
    found = Hiding.NONE if not (style := attributes.get("style")) else by_style(style[:_MAX_STYLE])
    if found is Hiding.TRICK and any(name in attributes for name in _ANIMATED_BY) and "opacity" in (style or ""):
        return Hiding.ANIMATED
    if found is Hiding.NONE and (classes := attributes.get("class")):
        found = _by_class(classes[:_MAX_CLASS].split())
    return found


def _by_class(classes: list[str]) -> Hiding:
    if not ASSISTIVE_CLASSES.isdisjoint(classes):
        return Hiding.ASSISTIVE
    if _CLOSED_CLASSES.isdisjoint(classes) or any(_SHOWN_AGAIN.match(name) for name in classes):
        return Hiding.NONE
    return Hiding.CLOSED


@lru_cache(4096)
def by_style(style: str) -> Hiding:
    """Return how the content of a `style` attribute hides its element.

    >>> by_style("position:absolute; left:-9999px"), by_style("Display : none !important")
    (<Hiding.TRICK: 'trick'>, <Hiding.CLOSED: 'closed'>)
    """
    rules = _declarations(style)
    if rules.get("display") == "none" or rules.get("content-visibility") == "hidden":
        return Hiding.CLOSED
    if rules.get("visibility") in ("hidden", "collapse"):
        return Hiding.CLOSED
    if _is_clipped(rules.get("clip", "")) or rules.get("clip-path", "").startswith(("inset(50%", "inset(100%")):
        return Hiding.ASSISTIVE
    if _is_zero(rules, "opacity"):
        return Hiding.TRICK if _ANIMATION.isdisjoint(rules) else Hiding.ANIMATED
    if _is_zero(rules, "font-size") or any(_is_far(rules[name]) for name in _AWAY & rules.keys()):
        return Hiding.TRICK
    if (moved := _NUMBER.search(rules.get("transform", ""))) and int(moved[1]) >= _FAR_SLIDE:
        return Hiding.TRICK
    flat = any(_is_zero(rules, name) for name in ("height", "max-height", "width"))
    return Hiding.CLOSED if flat and rules.get("overflow", "").startswith("hidden") else Hiding.NONE


def _declarations(style: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for declaration in style.lower().split(";")[:_MAX_DECLARATIONS]:
        name, _, value = declaration.partition(":")
        found[name.strip()] = value[:_MAX_VALUE].replace("!important", "").strip()
    return found


def _is_zero(rules: Mapping[str, str], name: str) -> bool:
    value = rules.get(name, "")
    return value[:1] in ("0", ".") and _ZERO.fullmatch(value) is not None


def _is_clipped(value: str) -> bool:
    sides = value.removeprefix("rect(").removesuffix(")").replace(",", " ").split()
    return len(sides) == 4 and _NO_SIZE.issuperset(sides)


def _is_far(value: str) -> bool:
    found = _NUMBER.match(value)
    return found is not None and int(found[1]) >= _FAR[found[2] or ""]


def words(attributes: Mapping[str, str | None]) -> set[str]:
    """Return the words of an element's classes and id.

    >>> sorted(words({"class": "faqItem accordion-panel__body", "id": "x1"}))
    ['accordion', 'body', 'faq', 'item', 'panel', 'x']
    """
    named = f"{(attributes.get('class') or '')[:_MAX_CLASS]} {(attributes.get('id') or '')[:_MAX_CLASS]}"
    return {word.lower() for word in _WORD.findall(named)}
