"""RDFa 1.1 Core, of which RDFa Lite is a part, as items in the form of microdata.

https://www.w3.org/TR/rdfa-core/#s_sequence, with the rules of HTML. Lists (`inlist`) are values like others, languages
and datatypes are not kept. Properties of the page itself that are in meta elements are read by meta_tags.py.

A statement has a subject, a name and an object. A subject is a `Thing`; an object is a text, a URL or a Thing. Names
without a vocabulary count within a `typeof` only: many pages forget the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from selectolax.lexbor import LexborNode

from curtsy.content.structured.rdfa_names import Names, full
from curtsy.content.structured.things import Thing, as_data
from curtsy.content.structured.values import Attributes, Values, attribute, elements, words

#: a page without these has no RDFa, except in meta elements
_FIRST = "[typeof],[about],[resource],[property]:not(meta),[rel*=':'],[rev*=':'],[rel~=license]"
_ALL = "[typeof],[about],[resource],[property],[rel],[rev]"
#: links that one relation has
_MAX_OBJECTS = 100
#: link types of HTML, which state nothing about a thing
_LINK_TYPES = frozenset((
    "alternate", "archives", "author", "bookmark", "canonical", "dns-prefetch", "external", "first", "help",
    "icon", "index", "last", "manifest", "me", "modulepreload", "next", "nofollow", "noopener", "noreferrer",
    "opener", "pingback", "preconnect", "prefetch", "preload", "prerender", "prev", "search", "shortcut",
    "sidebar", "stylesheet", "tag", "ugc", "sponsored", "up", "apple-touch-icon", "mask-icon",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Context:
    """What an element passes on to its children."""

    subject: Thing
    object: Thing
    names: Names
    #: statements that wait for their object: name, whether it is reversed, and their subject
    waiting: tuple[tuple[str, bool, Thing], ...] = ()


@dataclass(slots=True)
class _Statement:
    """What one element states."""

    subject: Thing | None = None
    object: Thing | None = None
    typed: Thing | None = None


def read(root: LexborNode, values: Values) -> list[dict[str, Any]]:
    """Return the items that are not the value of a property of another."""
    if root.css_first(_FIRST) is None:
        return []
    reader = _Reader(values)
    found = elements(root, _ALL)
    values.read_inner_first([node for node, attributes in found if _has_text(attributes)])
    for node, _ in found:
        if reader.read(node).waiting:
            for inner in node.css("[href],[src],[typeof],[about],[resource]")[:_MAX_OBJECTS]:
                reader.read(inner)
    return as_data(reader.top())


class _Reader:
    def __init__(self, values: Values) -> None:
        self._values = values
        #: the page itself
        self._page = Thing()
        self._things: dict[str, Thing] = {}
        self._all: list[Thing] = [self._page]
        self._used: set[int] = set()
        self._stated: set[tuple[int, str, Any]] = set()
        self._contexts: dict[int, _Context] = {}

    def top(self) -> list[Thing]:
        """Return the things that are no value of another; of things that are values of each other, the first."""
        stating = [thing for thing in self._all if thing.properties or (thing.types and thing is not self._page)]
        top = [thing for thing in stating if id(thing) not in self._used]
        reached = _reached(top)
        for thing in stating:
            if id(thing) not in reached:
                top.append(thing)
                reached |= _reached([thing])
        return top

    def read(self, node: LexborNode) -> _Context:
        """Read an element, after those around it."""
        path: list[LexborNode] = []
        at: LexborNode | None = node
        context = _Context(self._page, self._page, Names())
        while at is not None:
            if (known := self._contexts.get(at.mem_id)) is not None:
                context = known
                break
            path.append(at)
            at = at.parent
        for one in reversed(path):
            attributes = one.attributes
            context = self._element(one, attributes, context) if attributes else context
            self._contexts[one.mem_id] = context
        return context

    def _element(self, node: LexborNode, attributes: Attributes, context: _Context) -> _Context:
        names = context.names.within(attributes)
        properties = words(attributes, "property")
        rel = _relations(attributes, "rel", bool(properties))
        rev = _relations(attributes, "rev", bool(properties))
        is_root = node.tag == "html"
        said, is_empty = self._subjects(attributes, context, rel or rev, properties, is_root=is_root)
        if said.typed is not None:
            types = (names.url(one) for one in words(attributes, "typeof"))
            said.typed.types = list(dict.fromkeys((*said.typed.types, *types)))
        waiting = self._relate(said, names, rel, rev) if rel or rev else ()
        subject = said.subject or context.subject
        if properties and not (node.tag == "meta" and subject is self._page and not self._page.types):
            value = self._value(node, attributes, said, is_plain=not (rel or rev))
            for name in properties:
                self._state(subject, names, name, value)
        if is_empty:
            return context if names is context.names else replace(context, names=names)
        if said.subject is not None:
            self._complete(context, said.subject)
        return _Context(subject, said.object or said.subject or context.subject, names, waiting)

    def _subjects(
        self, attributes: Attributes, context: _Context, relations: list[str], properties: list[str], *, is_root: bool
    ) -> tuple[_Statement, bool]:
        """Return subject, object and typed thing of an element; and whether it changes nothing for its children."""
        about, is_typed = self._about(attributes), "typeof" in attributes
        if relations:
            subject = about or (self._page if is_root else context.object)
            target = self._resource(attributes) or (self._thing() if is_typed and about is None else None)
            return _Statement(subject, target, (about or target) if is_typed else None), False
        if properties and "content" not in attributes and "datatype" not in attributes:
            subject = about or (self._page if is_root else context.object)
            if not is_typed:
                return _Statement(subject), False
            typed = about or (self._page if is_root else self._resource(attributes) or self._thing())
            return _Statement(subject, typed, typed), False
        subject_or_none = about or self._resource(attributes) or (self._page if is_root else None)
        if subject_or_none is None and is_typed:
            subject_or_none = self._thing()
        is_empty = subject_or_none is None and not properties
        subject = subject_or_none or context.object
        return _Statement(subject, None, subject if is_typed else None), is_empty

    def _relate(
        self, said: _Statement, names: Names, rel: list[str], rev: list[str]
    ) -> tuple[tuple[str, bool, Thing], ...]:
        """State the relations of an element; return those whose object is in it."""
        subject = said.subject or self._page
        if said.object is None:
            said.object = self._thing()
            return (*((name, False, subject) for name in rel), *((name, True, subject) for name in rev))
        for name in rel:
            self._state(subject, names, name, said.object)
        for name in rev:
            self._state(said.object, names, name, subject)
        return ()

    def _complete(self, context: _Context, subject: Thing) -> None:
        for name, is_reversed, other in context.waiting:
            if is_reversed:
                self._state(subject, context.names, name, other)
            else:
                self._state(other, context.names, name, subject)

    def _state(self, subject: Thing, names: Names, name: str, value: Any) -> None:
        if value is None or (not names.is_known(name) and not subject.types):
            return
        key, vocabulary = names.key(name)
        if vocabulary is not None:
            subject.vocabulary = subject.vocabulary or vocabulary
            if subject.vocabulary != vocabulary:
                key = full(vocabulary, name)
        if isinstance(value, Thing):
            self._used.add(id(value))
        once = (id(subject), key, id(value) if isinstance(value, Thing) else value)
        if once not in self._stated:
            self._stated.add(once)
            subject.add((key,), value)

    def _value(self, node: LexborNode, attributes: Attributes, said: _Statement, *, is_plain: bool) -> Any:
        content = attribute(attributes, "content")
        if "content" in attributes or node.tag == "meta":
            return content
        if "datatype" not in attributes:
            if is_plain and (target := self._resource(attributes)) is not None:
                return target
            if said.typed is not None and "about" not in attributes:
                return said.typed
        moment = attribute(attributes, "datetime") if node.tag == "time" else None
        number = attribute(attributes, "value") if node.tag in ("data", "meter") else None
        if node.tag in ("img", "link"):
            return None
        return moment or number or self._values.text(node)

    def _thing(self, url: str | None = None) -> Thing:
        thing = Thing(id=url)
        self._all.append(thing)
        return thing

    def _about(self, attributes: Attributes) -> Thing | None:
        if "about" not in attributes:
            return None
        return self._named(attribute(attributes, "about")) or self._page

    def _resource(self, attributes: Attributes) -> Thing | None:
        for name in ("resource", "href", "src"):
            if (found := attribute(attributes, name)) is not None:
                return self._named(found)
        return None

    def _named(self, raw: str | None) -> Thing | None:
        """Return the thing with this URL, or this name in the page (`_:a`)."""
        if raw is not None and raw.startswith("[") and raw.endswith("]"):
            raw = raw[1:-1]
        url = raw if raw is not None and raw.startswith("_:") else self._values.url(raw)
        if url is None:
            return None
        if url not in self._things:
            self._things[url] = self._thing(url)
        return self._things[url]


def _has_text(attributes: Attributes) -> bool:
    """Whether its text may be its value."""
    return bool(attributes.get("property")) and not attributes.keys() & {"content", "typeof", "resource", "href", "src"}


def _relations(attributes: Attributes, name: str, has_property: bool) -> list[str]:
    """Return the names in `rel` or `rev` that state something. Beside `property`, plain words are link types."""
    return [one for one in words(attributes, name) if ":" in one or not (has_property or one.lower() in _LINK_TYPES)]


def _reached(things: list[Thing]) -> set[int]:
    """Return the things, their values, the values of these, and so on."""
    found: set[int] = set()
    left = list(things)
    while left:
        thing = left.pop()
        if id(thing) not in found:
            found.add(id(thing))
            left += [one for values in thing.properties.values() for one in values if isinstance(one, Thing)]
    return found
