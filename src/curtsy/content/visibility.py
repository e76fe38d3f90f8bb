"""What a reader sees of a page: which elements are permanently hidden, collapsed, or for screen readers only.

Content that a reader can open is content: accordions, tabs, `details`, "read more". Structure distinguishes it from
hidden text: a visible control refers to it, or the names of its classes say so. Stylesheets and scripts are not
evaluated. docs/reference/visible-text.md has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from curtsy.content.styles import Hiding, hiding, words
from curtsy.core.text_layout import Visibility

Attributes = Mapping[str, str | None]

#: parts of class names that may hide; the fewer, the faster
_NAME_PARTS = (
    *("hid", "none", "collapse", "tab-pane", "modal", "sr-only", "screen-reader", "show-for-sr", "invisible"),
    *("assistive", "offscreen", "Hidden"),
)
#: every element that may not be simply visible, and controls that may be closed; one pass over the page
_CANDIDATES = ",".join(
    (
        *("[hidden]", "[style]", '[aria-hidden="true"]', "[popover]", "details", "dialog", "[aria-controls]"),
        *(f'[class*="{part}"]' for part in _NAME_PARTS),
    )
)
_CONTROLS = '[aria-controls],a[href^="#"],[data-target^="#"],[data-bs-target^="#"]'
_FIELDS = 'input:not([type="hidden"]),textarea,select'

#: words of classes and ids of what a reader opens or turns to
_REVEALED = frozenset(
    ("accordion", "accordions", "collapse", "collapsed", "collapsible", "tab", "tabs", "tabpanel", "tabcontent",
     "faq", "faqs", "panel", "panels", "toggle", "toggled", "more", "readmore", "showmore", "expand", "expanded",
     "expandable", "expander", "slide", "slider", "carousel")
)  # fmt: skip
#: words of the text of an article; a page that checks its reader first shows it by a script
_ARTICLE = frozenset(("article", "post", "entry", "story"))
_BODY = frozenset(("body", "content", "text"))
_LEAST_PARAGRAPHS = 3
#: and of what interrupts or surrounds the content
_INTERRUPTING = frozenset(
    ("modal", "dialog", "popup", "cookie", "cookies", "consent", "gdpr", "lightbox", "overlay", "offcanvas",
     "tooltip", "popover", "dropdown")
)  # fmt: skip
_DIALOGS = frozenset(("dialog", "alertdialog", "tooltip", "menu"))
_ICONS = frozenset(("icon", "icons", "glyphicon", "fa", "fas", "far", "fab", "material", "symbols"))
#: parents whose words count for what they contain
_NEAR = 2
#: controls of one element that are tried
_MAX_CONTROLS = 8
_MAX_IDS = 50


class Judged(NamedTuple):
    states: dict[int, Visibility]
    #: it has hidden elements as React streams them
    may_be_streamed: bool


def judge(root: LexborNode) -> Judged:
    """Return the visibility of elements by their `mem_id`; others are as visible as their parents."""
    return _Page(root).judged()


class _Page:
    def __init__(self, root: LexborNode) -> None:
        self._root = root
        self._states: dict[int, Visibility] = {}
        #: elements that are not displayed, or may not be
        self._undisplayed: set[int] = set()
        #: id -> elements that refer to it; found on first use
        self._controls: dict[str, list[LexborNode]] | None = None
        #: ancestors that are known to be displayed or not
        self._reachable: dict[int, bool] = {}

    def judged(self) -> Judged:
        candidates = [(node, node.attributes) for node in _once(self._root.css(_CANDIDATES))]
        hidings = [hiding(node.tag or "", attributes) for node, attributes in candidates]
        self._undisplayed = {
            node.mem_id for (node, _), how in zip(candidates, hidings, strict=True) if how is not Hiding.NONE
        }
        for (node, attributes), how in zip(candidates, hidings, strict=True):
            self._judge(node, attributes, how)
        self._close_panels({name for _, attributes in candidates for name in _closed(attributes)})
        streamed = any("hidden" in attributes and "S:" in (attributes.get("id") or "") for _, attributes in candidates)
        return Judged(self._states, streamed)

    def _judge(self, node: LexborNode, attributes: Attributes, how: Hiding) -> None:
        if node.tag == "details":
            self._details(node, attributes)
        if how is Hiding.NONE and "class" not in attributes and "aria-hidden" not in attributes:
            return
        state = self._state(node, attributes, how)
        if state is not None:
            self._states[node.mem_id] = state

    def _details(self, node: LexborNode, attributes: Attributes) -> None:
        if "open" in attributes:
            return
        self._states[node.mem_id] = Visibility.COLLAPSED
        summary = next((child for child in node.iter() if child.tag == "summary"), None)
        if summary is not None:
            self._states.setdefault(summary.mem_id, Visibility.VISIBLE)

    def _state(self, node: LexborNode, attributes: Attributes, how: Hiding) -> Visibility | None:
        if how is Hiding.ASSISTIVE:
            return Visibility.SCREEN_READER
        if how is Hiding.ANIMATED:
            return Visibility.COLLAPSED
        if how is Hiding.CLOSED:
            return Visibility.COLLAPSED if self._can_be_opened(node, attributes) else Visibility.HIDDEN
        if how is Hiding.TRICK:
            return self._tricked(node, attributes)
        return self._by_framework(node, attributes)

    def _tricked(self, node: LexborNode, attributes: Attributes) -> Visibility | None:
        """A slide that is out of sight is collapsed. `font-size: 0` on a container only removes blanks."""
        if "font-size" in (attributes.get("style") or "").lower() and any(True for _ in node.iter()):
            return None
        return Visibility.COLLAPSED if words(attributes) & _REVEALED else Visibility.HIDDEN

    def _by_framework(self, node: LexborNode, attributes: Attributes) -> Visibility | None:
        classes = (attributes.get("class") or "").split()
        if "modal" in classes and ("fade" in classes or attributes.get("role") == "dialog"):
            return None if {"show", "in"} & set(classes) else Visibility.HIDDEN
        if "collapse" in classes and node.tag != "table" and not {"show", "in", "navbar-collapse"} & set(classes):
            return Visibility.COLLAPSED
        if "tab-pane" in classes and not {"active", "show"} & set(classes):
            return Visibility.COLLAPSED
        if attributes.get("aria-hidden") == "true":
            return self._aria_hidden(node, attributes)
        return None

    def _aria_hidden(self, node: LexborNode, attributes: Attributes) -> Visibility | None:
        named = words(attributes)
        if node.tag == "i" or named & _ICONS or attributes.get("role") in _DIALOGS or named & _INTERRUPTING:
            return Visibility.HIDDEN
        return Visibility.COLLAPSED if self._has_control(attributes) else None

    def _can_be_opened(self, node: LexborNode, attributes: Attributes) -> bool:
        role = attributes.get("role")
        if (attributes.get("hidden") or "").lower() == "until-found" or role == "tabpanel":
            return True
        own = words(attributes)
        if node.tag == "dialog" or "popover" in attributes or role in _DIALOGS or own & _INTERRUPTING:
            return False
        if self._has_control(attributes) or _follows_a_control(node) or _is_article_text(own, node):
            return True
        return bool((own | _words_near(node)) & _REVEALED) and node.css_first(_FIELDS) is None

    def _has_control(self, attributes: Attributes) -> bool:
        name = attributes.get("id")
        if not name:
            return False
        if self._controls is None:
            self._controls = _controls(self._root)
        return any(self._is_reachable(control) for control in self._controls.get(name, ())[:_MAX_CONTROLS])

    def _is_reachable(self, node: LexborNode) -> bool:
        """Whether nothing around the element is permanently hidden, or not yet judged."""
        path: list[int] = []
        at: LexborNode | None = node
        found = True
        while at is not None:
            number = at.mem_id
            if (known := self._reachable.get(number)) is not None:
                found = known
                break
            path.append(number)
            if number in self._undisplayed and self._states.get(number, Visibility.HIDDEN) is Visibility.HIDDEN:
                found = False
                break
            at = at.parent
        self._reachable.update(dict.fromkeys(path, found))
        return found

    def _close_panels(self, names: set[str]) -> None:
        """A panel whose control says that it is closed is collapsed, however its stylesheet hides it."""
        for node in self._root.css("[id]") if names else ():
            if node.id in names:
                self._states.setdefault(node.mem_id, Visibility.COLLAPSED)


def _once(nodes: list[LexborNode]) -> Iterator[LexborNode]:
    """An element that matches several selectors is found several times."""
    return iter({node.mem_id: node for node in nodes}.values())


def _controls(root: LexborNode) -> dict[str, list[LexborNode]]:
    found: dict[str, list[LexborNode]] = {}
    for node in _once(root.css(_CONTROLS)):
        attributes = node.attributes
        named = set(_ids(attributes, "aria-controls"))
        named.update(
            value[1:]
            for name in ("href", "data-target", "data-bs-target")
            if (value := attributes.get(name) or "")[:1] == "#"
        )
        for name in named:
            found.setdefault(name, []).append(node)
    return found


def _ids(attributes: Attributes, name: str) -> list[str]:
    return (attributes.get(name) or "").split()[:_MAX_IDS]


def _closed(attributes: Attributes) -> list[str]:
    """Return the panels that a control says are closed."""
    if attributes.get("aria-expanded") == "false" or attributes.get("aria-selected") == "false":
        return _ids(attributes, "aria-controls")
    return []


def _words_near(node: LexborNode) -> set[str]:
    found: set[str] = set()
    above = node.parent
    for _ in range(_NEAR):
        if above is None or above.tag in ("body", "html"):
            break
        found |= words(above.attributes)
        above = above.parent
    return found


def _is_article_text(own: set[str], node: LexborNode) -> bool:
    if own.isdisjoint(_ARTICLE) or own.isdisjoint(_BODY):
        return False
    return len(node.css("p")) >= _LEAST_PARAGRAPHS and node.css_first(_FIELDS) is None


def _follows_a_control(node: LexborNode) -> bool:
    """Whether the element before it is or contains a control that opens something."""
    before = node.prev
    while before is not None and (before.tag or "-")[0] == "-":
        before = before.prev
    return before is not None and before.tag in _OPENERS and before.css_first("[aria-expanded]") is not None


#: elements that may contain a control; others could be large
_OPENERS = frozenset(
    ("button", "a", "h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary")
)  # fmt: skip
