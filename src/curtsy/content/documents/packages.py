"""ZIP files of XML, as office formats use them: bounded unpacking, and XML events without entities."""

from __future__ import annotations

import io
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote
from xml.parsers import expat

from curtsy.content.documents.builder import Builder, Unreadable
from curtsy.content.documents.model import Limits, Problem

_CHUNK = 64 * 1024
#: a part that is read as a whole, not as events
_MOST_SMALL_BYTES = 32 << 20
_OLE = b"\xd0\xcf\x11\xe0"
_BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, NotImplementedError, ValueError, OverflowError,
    KeyError, IndexError,
)  # fmt: skip


class Package:
    """The members of a ZIP file. All that is unpacked counts toward one limit."""

    def __init__(self, body: bytes, limits: Limits) -> None:
        if body.startswith(_OLE):
            raise Unreadable("encrypted")  # an OLE container: the office programs wrap encrypted files in one
        self._limits = limits
        self._left = limits.unpacked_bytes
        try:
            self._file = zipfile.ZipFile(io.BytesIO(body))
            members = self._file.infolist()
        except _BROKEN:
            raise Unreadable("malformed") from None
        if len(members) > limits.members:
            raise Unreadable("too_large")
        self._members = {member.filename.lstrip("/"): member for member in members}

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def names(self) -> list[str]:
        return list(self._members)

    def chunks(self, name: str) -> Iterator[bytes]:
        member = self._members.get(name)
        if member is None:
            raise Unreadable("malformed")
        if member.flag_bits & 1:
            raise Unreadable("encrypted")
        try:
            with self._file.open(member) as unpacked:
                while chunk := unpacked.read(_CHUNK):
                    self._left -= len(chunk)
                    if self._left < 0:
                        raise Unreadable("too_large")
                    yield chunk
        except (RuntimeError, *_BROKEN):
            raise Unreadable("malformed") from None

    def read(self, name: str) -> bytes:
        """A small member as a whole."""
        pieces, size = [], 0
        for chunk in self.chunks(name):
            size += len(chunk)
            if size > _MOST_SMALL_BYTES:
                raise Unreadable("too_large")
            pieces.append(chunk)
        return b"".join(pieces)

    def events(self, name: str) -> Iterator[Event]:
        return events(self.chunks(name), self._limits.depth)

    def optional(self, name: str) -> Iterator[Event]:
        """The events of a part that may be missing or broken: what can be read of it."""
        if name in self:
            try:
                yield from self.events(name)
            except Unreadable as ended:
                if ended.problem != "malformed":
                    raise

    def relations(self, name: str) -> dict[str, Relation]:
        """Targets that a part of an office file refers to, by their id."""
        folder, _, file = name.rpartition("/")
        found = {}
        for event in self.optional(posixpath.join(folder, "_rels", f"{file}.rels")):
            if event.kind == START and event.name.endswith("Relationship"):
                target, is_outside = event.get("Target"), event.get("TargetMode") == "External"
                path = target if is_outside else resolve(folder, target)
                found[event.get("Id")] = Relation(event.get("Type").rpartition("/")[2], path, is_outside)
        return found


def resolve(folder: str, target: str) -> str:
    """The name of a member that a part in `folder` refers to."""
    path = unquote(target.partition("#")[0])
    return path.lstrip("/") if path.startswith("/") else posixpath.normpath(posixpath.join(folder, path))


class Relation(NamedTuple):
    kind: str
    target: str
    is_outside: bool


START, END, TEXT = 0, 1, 2
_NOTHING: dict[str, str] = {}


class Event(NamedTuple):
    """The start or end of an element, or text. Names have a short prefix by their namespace: `w:p`, `text:span`."""

    kind: int
    #: the text, if the event is text
    name: str
    attributes: dict[str, str] = _NOTHING

    def get(self, name: str) -> str:
        return self.attributes.get(name, "")


#: part of a namespace -> prefix; both variants of OOXML have these parts
_PREFIXES = (
    ("wordprocessingml", "w"), ("spreadsheetml", "s"), ("presentationml", "p"), ("drawingml", "a"),
    ("officeDocument/relationships", "r"), ("officeDocument/2006/relationships", "r"), ("markup-compatibility", "mc"),
    ("purl.org/dc/elements", "dc"), ("purl.org/dc/terms", "dcterms"), ("idpf.org/2007/opf", "opf"),
    ("www.w3.org/1999/xlink", "xlink"), ("XML/1998/namespace", "xml"),
)  # fmt: skip


def _short(name: str) -> str:
    space, bound, local = name.rpartition("}")
    if not bound:
        return local
    for part, prefix in _PREFIXES:
        if part in space:
            return f"{prefix}:{local}"
    if space.startswith("urn:oasis:names:tc:opendocument:"):
        return f"{space.split(':')[-2].removesuffix('ing')}:{local}"  # drawing
    return f"{space.rstrip('/').rpartition('/')[2]}:{local}"


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        found = _short(name)
        if len(self) < 10_000:
            self[name] = found
        return found


def events(chunks: Iterable[bytes], most_depth: int) -> Iterator[Event]:
    """Elements and text of an XML file. Nothing is fetched, and a file that declares entities is refused."""
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.buffer_size = _CHUNK
    parser.EntityDeclHandler = _refuse
    waiting: list[Event] = []
    add, names, depth = waiting.append, _Names(), 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > most_depth:
            raise Unreadable("too_large")
        shortened = {names[key]: value for key, value in attributes.items()} if attributes else _NOTHING
        add(Event(START, names[name], shortened))

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        add(Event(END, names[name]))

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda text: add(Event(TEXT, text))
    problem: Problem = ""
    for chunk in chain(chunks, (b"",)):
        try:
            parser.Parse(chunk, not chunk)
        except (expat.ExpatError, ValueError, LookupError):
            problem = "malformed"
        except Unreadable as ended:
            problem = ended.problem
        yield from waiting
        waiting.clear()
        if problem:
            raise Unreadable(problem)


def _refuse(*_args: object) -> None:
    raise Unreadable("malformed")


def skip(found: Iterator[Event], name: str) -> None:
    """Passes over the rest of an element that has just started."""
    depth = 1
    for event in found:
        if event.kind == START and event.name == name:
            depth += 1
        elif event.kind == END and event.name == name:
            depth -= 1
            if not depth:
                return


def core_facts(builder: Builder, package: Package) -> None:
    """Title, author and dates of an office file."""
    into = {"dc:title": "title", "dc:creator": "author", "dcterms:created": "created", "dcterms:modified": "modified",
            "dc:language": "language"}  # fmt: skip
    text_facts(builder, package.optional("docProps/core.xml"), into.get)


def text_facts(builder: Builder, found: Iterator[Event], fact_of: Callable[[str], str | None]) -> None:
    """Elements whose text is a fact."""
    fact, pieces = None, list[str]()
    for event in found:
        if event.kind == START:
            fact, pieces = fact_of(event.name), []
        elif event.kind == TEXT and fact:
            pieces.append(event.name)
        elif event.kind == END and fact:
            builder.facts(**{fact: "".join(pieces)})
            fact = None
