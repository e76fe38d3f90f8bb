"""The title of a page within its content: the heading that says what `<title>` says, and the summary below it."""

from __future__ import annotations

import re

from curtsy.content.main_content import names
from curtsy.content.main_content.names import Part
from curtsy.content.main_content.outline import Element, Outline

#: a heading of a higher rank is preferred
_TITLE_TAGS = {"h1": 4, "h2": 3, "h3": 1}
_MAX_HEADING = 300
#: letters and digits that a title has at least, to be compared
_MIN_CHARS = 4
#: characters at the beginning that make two titles alike
_ALIKE = 20
_NO_WORD = re.compile(r"[\W_]+")
_HOME = re.compile(r"(?:https?://[^/]{1,100})?/?(?:index\.[a-z]{2,5}|home)?/?")
_MAX_LEAD = 900
_MIN_LEAD = 20


def title_heading(page: Outline, title: str) -> int | None:
    """Return the heading that says what the title of the page says, else the only heading of the first rank."""
    wanted = _plain(title)
    best, found = 0, None
    for number in page.tagged(*_TITLE_TAGS):
        element = page.elements[number]
        rank = _TITLE_TAGS[element.tag]
        if not 3 < element.end - element.start < _MAX_HEADING or is_logo(page, number):
            continue
        said = _plain(page.text[element.start : element.end])
        # `Headline - Name of the site`: what the title begins with is the headline.
        size = min(len(said), len(wanted)) * rank * (3 if wanted.startswith(said) else 1)
        if size > best and _fits(said, wanted):
            best, found = size, number
    return _only_h1(page) if found is None else found


def _fits(said: str, wanted: str) -> bool:
    if len(said) < _MIN_CHARS or len(wanted) < _MIN_CHARS:
        return False
    if said in wanted or (len(wanted) > 12 and wanted in said):
        return True
    return min(len(said), len(wanted)) > _ALIKE and said[:_ALIKE] == wanted[:_ALIKE]


def _plain(text: str) -> str:
    return _NO_WORD.sub("", text[:400].lower())


def _only_h1(page: Outline) -> int | None:
    found = [number for number in page.tagged("h1") if page.elements[number].letters >= 3]
    return found[0] if len(found) == 1 and not is_logo(page, found[0]) else None


def is_logo(page: Outline, number: int) -> bool:
    """Return whether a heading is the name of the site: it links to the home page, or its names say so."""
    element = page.elements[number]
    if element.part is Part.FRAME:
        return True
    if not element.links:
        return False
    within = page.elements[number : min(element.stop, number + 10)]
    return any(one.tag == "a" and _HOME.fullmatch((one.attributes.get("href") or "").strip()) for one in within)


def leads(elements: list[Element], heading: int, root: int, out: set[int]) -> list[int]:
    """Return the subtitle and the summary between the title and the root."""
    found = []
    number = elements[heading].stop
    while number < root:
        element = elements[number]
        if number in out:
            number = element.stop
        elif element.stop <= root and _is_lead(element):
            found.append(number)
            number = element.stop
        else:
            number += 1
    return found


def _is_lead(element: Element) -> bool:
    if not _MIN_LEAD <= element.letters <= _MAX_LEAD or element.linked > 0.3 * element.letters:
        return False
    if names.is_lead(element.names):
        return element.prose > 0 or element.tag in ("h2", "h3", "p")
    return element.tag in ("h2", "p") and element.prose >= 60 and element.part is Part.UNKNOWN
