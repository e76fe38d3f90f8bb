"""The second source of claims: selectors, by CSS, XPath, labels of table cells, or patterns over the text.

The evidence of a pattern in the page's text is the sentence around the match. The evidence of an element is its text or
attribute, and the locator is the selector. The evidence of a table cell is the cell, with its labels. Patterns take
time linear in the text; `elements` bounds the others.

Items of a list that are texts or numbers are distinguished by their values. Items that are objects are distinguished by
their positions (see `items`), so that the values of each come from one place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.core.text_layout import EMPTY_LAYOUT, TextLayout, Visibility, VisibilitySpan
from curtsy.extract import items
from curtsy.extract.cells import labelled, labelled_lines
from curtsy.extract.elements import Elements, is_light
from curtsy.extract.items import Cell, Column
from curtsy.extract.page_selection import fits
from curtsy.extract.selector_process import MAX_FOUND
from curtsy.extract.sources import PageSources
from curtsy.extract.values import coerced
from curtsy.grounding import attribution
from curtsy.grounding.schema import Leaf, Schema
from curtsy.grounding.schema_hints import Selector, compiled
from curtsy.grounding.sentences import sentence_around

#: characters of the text that patterns search; documents are longer than pages
_MAX_TEXT = 250_000
_MAX_FILE_TEXT = 1_000_000
#: of one leaf on one page
_MAX_VALUES = 3
_MAX_ITEMS = 50
#: added to the numbers of what the organization says against itself, so that they differ from those of values
_ADMITTED = 1_000_000
#: matches that one pattern may have
_MAX_FOUND = 500
#: matches in one of many elements that are tried for a value
_MAX_TRIED = 20
_WE = r"(?:we|wir|nous|nosotros|noi|wij)"
#: the subject right before or right after the match; another name in between would be the subject instead:
#: `we were founded`, not `the mill that we rent was founded`
_HELPING = r"(?:were|are|have|had|was|first|wurden|sind|haben|avons|sommes|fuimos|hemos|siamo|abbiamo|zijn|werden)"
_WE_BEFORE = re.compile(
    rf"(?<!that )(?<!which )(?<!whom )(?<!where )(?<!die )(?<!das )(?<!den )(?<!que )(?<!avant )(?<!chez )"
    rf"(?<!avec )(?<!before )(?<!vor )\b{_WE}\b[^\w]*"
    rf"(?:{_HELPING}[^\w]+)?$",
    re.IGNORECASE,
)
_WE_AFTER = re.compile(rf"^[\s,–—-]*{_WE}\b", re.IGNORECASE)
#: `the mill, which was founded`
_RELATIVE = re.compile(r"\b(?:which|who|that|die|der|das|qui|que|che|dat)\s+(?:first |later )?$", re.IGNORECASE)
#: `Unlike Alder, founded in 1999, we`: the match is about another name; not `A family firm founded in 1999, we`
_OTHER_BEFORE = re.compile(r"\s[A-ZÀ-ÖØ-Þ]|,")
#: another company, before `the company`
_COMPANY = re.compile(
    r"\b(?:GmbH|AG|KG|Ltd|Limited|Inc|LLC|plc|Corp|Holdings?|SARL|SAS|S\.A\.|S\.L\.|S\.r\.l\.|S\.p\.A\.|Lda|B\.V\.|N\.V\.)(?!\w)|株式会社"
)
_MAX_BACK = 600
#: `, a year after the other was wound up`
_LATER = re.compile(
    r", (?:(?:an?|one|two|three|ein|une?|dos|tres) )?[a-zäöüéáíóúñ]{2,12} "
    r"(?:after|before|later|nach|vor|après|avant|después|antes)\b"
)
_SENTENCE = re.compile(r"[.!?]\s|\n")
_DONE = re.compile("ました|ています|ている。")
#: an answer in an interview follows it
_QUESTION = re.compile(r"[^.!?\n]{0,200}\?\s{0,3}$")
_MAX_QUESTION = 240
#: `, with its seat in Fabriano, `
_INSERTED = re.compile(r", [a-zà-öø-ÿ][^,.;:()]{2,60}, ")
_AUXILIARIES = frozenset(
    [
        "was",
        "were",
        "has",
        "is",
        "are",
        "wurde",
        "wurden",
        "ist",
        "sind",
        "a",
        "ont",
        "est",
        "sont",
        "fue",
        "es",
        "ha",
        "foi",
        "è",
        "werd",
        "werden",
    ]
)
_BETWEEN = re.compile(r"(?![’'])[^A-ZÀ-ÖØ-Þ]{0,60}")


#: the leaf with the name of the subject
_NAME = "/name"


class Found(NamedTuple):
    """A text that a selector found, with its source and the quote."""

    text: str
    source: Source
    quote: str
    #: parts of the quote around the match
    before: str = ""
    after: str = ""
    #: of a table cell, or a note
    span: tuple[int, int] | None = None
    #: the other labels of a cell whose label several cells have: one must name the subject
    others: tuple[str, ...] | None = None
    #: where it begins in the page's text
    at: int | None = None
    #: the group `of`: the phrase that must be the organization
    of: str | None = None


def claims(
    schema: Schema,
    page: PageSources,
    leaves: Iterable[Leaf] | None = None,
    known: Mapping[str, Sequence[str]] | None = None,
    *,
    fallback: bool = False,
) -> list[Claim]:
    """Return what the schema's selectors find on the page, best first for each leaf.

    `known` has the values of leaves that are the subject of others; values found here are added. `fallback`: only the
    selectors for leaves without a value, otherwise only the others.
    """
    names = {path: list(values) for path, values in (known or {}).items()}
    view = _View(page, is_about_one=schema.per == "page")
    found: list[Claim] = []
    for some in items.together(schema.leaves if leaves is None else leaves):
        if items.is_of_object(some[0]):
            found += [] if fallback else _of_list(schema, some, view, names)
        else:
            own = _of_leaf(schema, some[0], view, names, fallback)
            names.setdefault(some[0].path, []).extend(claim.value for claim in own if isinstance(claim.value, str))
            found += own
    return found


def _of_leaf(
    schema: Schema, leaf: Leaf, view: _View, names: Mapping[str, Sequence[str]], fallback: bool
) -> list[Claim]:
    limit = _MAX_ITEMS if leaf.many else _MAX_VALUES
    found: dict[str, Claim] = {}
    admitted: list[Claim] = []
    for selector in schema.selectors.get(leaf.path, ()):
        if found and leaf.many:
            break
        if selector.fallback is not fallback or not fits(selector.pages, view.page.url, view.page.roles):
            continue
        for one in view.look(selector):
            value = coerced(one.text, leaf)
            if value is None or repr(value) in found:
                continue
            if not _is_about(selector, one, names):
                admitted += _admitted(leaf, selector, value, one)
                continue
            if not leaf.many and (view.is_elsewhere(one) or _is_of_empty_cart(schema, leaf, value)):
                continue
            found[repr(value)] = _claim(leaf.path.replace("*", str(len(found))), value, one)
            if len(found) == limit:
                return [*found.values(), *admitted]
    return [*found.values(), *admitted]


def _admitted(leaf: Leaf, selector: Selector, value: Any, found: Found) -> list[Claim]:
    """Return what the organization says against itself, `our emissions rose`: no value, but evidence for a score."""
    if not (leaf.many and selector.own and selector.sentence):
        return []
    said = " ".join(found.quote.split())
    if not all(compiled(pattern).search(found.quote) for pattern in selector.also):
        return []
    why = attribution.why_against(said, attribution.names_in(said, found.source.url))
    number = str(_ADMITTED + (found.at or 0))
    return [replace(_claim(leaf.path.replace("*", number), value, found), against=why)] if why else []


def _claim(path: str, value: Any, found: Found) -> Claim:
    quote = None if found.span is not None else found.quote
    return Claim(path=path, value=value, rung=Rung.SELECTOR, source=found.source, quote=quote, span=found.span)


def _is_about(selector: Selector, found: Found, names: Mapping[str, Sequence[str]]) -> bool:
    if not all(compiled(pattern).search(found.quote) for pattern in selector.also):
        return False
    if any(compiled(pattern).search(found.quote) for pattern in selector.without):
        return False
    if selector.own and _why_not_own(selector, found, names.get(_NAME, ())):
        return False
    if selector.asserted and not _is_asserted(found):
        return False
    if selector.subject is None:
        return True
    named = names.get(selector.subject, ())
    if found.span is not None:
        return found.others is None or _is_of(found.others, named)
    if found.of is not None:
        short = attribution.names_in(found.of, found.source.url)  # `Alder` of Alder Joinery, as its domain has it
        return attribution.is_organization(found.of, [*named, *short]) and not _follows_other(found, named)
    if _RELATIVE.search(found.before):
        return False
    if _WE_BEFORE.search(found.before):
        return True
    if _WE_AFTER.match(found.after) and not _OTHER_BEFORE.search(found.before):
        return True
    return any(_names(found, name) for name in named if name)


def _why_not_own(selector: Selector, found: Found, names: Sequence[str]) -> str:
    said = found.quote if selector.sentence else _frame(found)
    if selector.subject is not None:  # who it is about is checked by the subject
        return attribution.why_not_asserted(said)
    own = attribution.names_in(found.quote, found.source.url)
    reason = attribution.why_not_own(said, own)
    if reason != "other_subject" or not names:
        return reason
    known = attribution.names_in(found.quote, found.source.url, names)
    return reason if known == own or _names_like(found, names) else attribution.why_not_own(said, known)


def _is_asserted(found: Found) -> bool:
    """`It all began in 1953`, up to the next comma: what follows, `in a former stable`, does not matter."""
    at = found.quote.find(found.text)
    end = next((place for place in range(at, len(found.quote)) if found.quote[place] in ",;、"), len(found.quote))
    return attribution.why_not_asserted(found.quote[:end]) in ("", "past")  # `It all began back in 1953`


def _names_like(found: Found, names: Sequence[str]) -> bool:
    """`Norbury Town Council has cut its bill. The council planted 400 trees`: it is perhaps about the other council."""
    if found.at is None:
        return False
    text = found.source.text
    before = text[max(text.rfind("\n", 0, found.at) + 1, found.at - _MAX_BACK) : found.at]
    return attribution.names_like(before, names)


def _frame(found: Found) -> str:
    """What a sentence says of the value: `some say that our mission is`, without the text, which may be a plan; `we
    were founded in 1997`, without `a year after the other society was wound up`; `today our head office is in Leeds`,
    without `until 2018 it was in Hull;`."""
    said = found.quote
    at = said.find(found.text)
    if at < 0:
        return said
    start, end = said.rfind("; ", 0, at) + 1, at + len(found.text)
    if " " not in found.text:
        later = _LATER.search(said, at)
        return said[start:] if later is None else said[start : later.start()]
    stop = said.find("; ", end)
    return said[start:at] + (said[end:] if stop < 0 else said[end:stop])


def _follows_other(found: Found, names: Sequence[str]) -> bool:
    """`Since 2020 we belong to Alder plc. The company was founded in 1921`, `Alder is our client. The company …`: it is
    perhaps about the other one."""
    if found.at is None or not attribution.is_anaphor(found.of or ""):
        return False
    text = found.source.text
    line = text.rfind("\n", 0, found.at) + 1
    if _COMPANY.search(text[max(line, found.at - _MAX_BACK) : found.at]) or _names_like(found, names):
        return True
    said = [one for one in _SENTENCE.split(text[max(0, found.at - _MAX_BACK) : found.at]) if one.strip()]
    return bool(said) and attribution.introduces_other(said[-1])


def _is_of(labels: Sequence[str], names: Sequence[str]) -> bool:
    """The cell of a table about several: its other label is a name of the subject."""
    wanted = {" ".join(name.casefold().split()) for name in names}
    return any(" ".join(label.casefold().split()) in wanted for label in labels)


def _is_predicate(found: Found) -> bool:
    """The match begins with a verb: `was founded`, so that its subject is not in the insertion before it."""
    said = found.quote[len(found.before) :].split(None, 1)
    return bool(said) and said[0].casefold() in _AUXILIARIES


def _names(found: Found, name: str) -> bool:
    """The name comes right before, with no other name in between, or right after."""
    start = found.before.casefold().rfind(name.casefold())
    between = found.before[start + len(name) :]
    if start >= 0 and (_BETWEEN.fullmatch(between) or (_INSERTED.fullmatch(between) and _is_predicate(found))):
        return True
    return found.after.lstrip(" ,–—-").casefold().startswith(name.casefold())


# Lists of objects


def _of_list(schema: Schema, leaves: Sequence[Leaf], view: _View, names: dict[str, list[str]]) -> list[Claim]:
    selectors = [one for leaf in leaves for one in schema.selectors.get(leaf.path, ())]
    in_process = any(one.css is not None and not is_light(one.css) for one in selectors)
    columns = _columns(schema, leaves, view, names, in_process)
    if in_process and view.exhausted:  # some were evaluated in the process, some here
        columns = _columns(schema, leaves, view, names, False)
    return [
        replace(row[leaf.path], path=leaf.path.replace("*", str(number)))
        for number, row in enumerate(items.rows(columns)[:_MAX_ITEMS])
        for leaf in leaves
        if leaf.path in row
    ]


def _columns(
    schema: Schema, leaves: Sequence[Leaf], view: _View, names: dict[str, list[str]], in_process: bool
) -> list[Column]:
    """Return the columns of leaves with values; leaves that are the subject of others come first."""
    subjects = {one.subject for leaf in leaves for one in schema.selectors.get(leaf.path, ())}
    columns: list[Column] = []
    for leaf in sorted(leaves, key=lambda leaf: leaf.path not in subjects):
        for selector in schema.selectors.get(leaf.path, ()):
            if not fits(selector.pages, view.page.url, view.page.roles):
                continue
            column = _column(leaf, selector, view.matches(selector, in_process), names)
            if values := [cell.claim.value for cell in column.cells if cell.claim]:
                names.setdefault(leaf.path, []).extend(value for value in values if isinstance(value, str))
                columns.append(column)
                break
    return columns


def _column(leaf: Leaf, selector: Selector, found: Iterable[_Match], names: Mapping[str, Sequence[str]]) -> Column:
    matches = list(found)
    comparable = all(place for place, _ in matches)
    # Several texts of one element have one position.
    places: dict[Any, list[Found]] = {}
    limit = _MAX_TRIED if len({place for place, _ in matches}) > 1 else _MAX_FOUND
    for at, (place, said) in enumerate(matches):
        places.setdefault(place if comparable else at, []).extend(islice(said, limit))
    cells = [_read(leaf, selector, place if comparable else (), said, names) for place, said in places.items()]
    inner = [_read(leaf, selector, (), [one], names) for said in places.values() for one in said if len(places) == 1]
    named = selector.css is not None or selector.xpath is not None
    kind = "text" if not (named and comparable) else "css" if selector.css is not None else "xpath"
    return Column(leaf.path, kind, cells, inner, cut=len(matches) >= (MAX_FOUND if named else _MAX_FOUND))


def _read(
    leaf: Leaf, selector: Selector, place: tuple[int, ...], said: Iterable[Found], names: Mapping[str, Sequence[str]]
) -> Cell:
    for one in said:
        value = coerced(one.text, leaf)
        if value is not None and _is_about(selector, one, names):
            return Cell(place, _claim(leaf.path, value, one))
    return Cell(place, None)


def _is_of_empty_cart(schema: Schema, leaf: Leaf, value: Any) -> bool:
    """`Sub-Total $0.00` below the label `Price`: no product costs nothing."""
    return leaf.path == "/price" and value == 0 and "Product" in schema.types


# Finding


#: the chain of an element, or an empty one, and its texts
_Match = tuple[tuple[int, ...], Iterator[Found]]


class _View:
    """A page for selectors."""

    def __init__(self, page: PageSources, *, is_about_one: bool) -> None:
        self.page, self._is_about_one = page, is_about_one
        self._elements = None if page.document is None else Elements(page.document)

    @property
    def exhausted(self) -> bool:
        return self._elements is not None and self._elements.exhausted

    def is_elsewhere(self, found: Found) -> bool:
        """Whether it is in a part about another thing than the page is: `More events`."""
        if not self._is_about_one or found.at is None or self.page.article is None:
            return False
        return self.page.article.is_elsewhere(found.at, in_boxes=True)

    def look(self, selector: Selector) -> Iterator[Found]:
        for _, said in self.matches(selector):
            yield from said

    def matches(self, selector: Selector, in_process: bool = False) -> Iterator[_Match]:
        """Yield the matching elements, or the matches in the page's text; `in_process` as in `Elements.found`."""
        if selector.label is not None:
            for one in self._in_cells(selector, selector.label):
                yield (), iter((one,))
        elif selector.css is None and selector.xpath is None:
            for one in self._in_text(selector):
                yield (), iter((one,))
        elif self._elements is not None:
            for element in self._elements.found(selector, in_process=in_process):
                yield element.chain, self._in_element(selector, element.text)

    def _in_element(self, selector: Selector, text: str) -> Iterator[Found]:
        if not text:
            return
        locator = f"css:{selector.css}" if selector.css is not None else f"xpath:{selector.xpath}"
        locator += f" @{selector.attribute}" if selector.attribute else ""
        layout = EMPTY_LAYOUT if selector.attribute else self._visibility_of(text)
        source = Source(SourceKind.ATTRIBUTE, self.page.page, self.page.url, text, locator, layout)
        if selector.pattern is None:
            yield Found(text, source, text)
        else:
            for match in _matches(selector.pattern, text):
                yield Found(_group(match), source, text)

    def _visibility_of(self, text: str) -> TextLayout:
        """An element whose text a reader sees nowhere without opening something is collapsed."""
        page, at = self.page.text, -1
        seen = Visibility.VISIBLE
        for _ in range(_MAX_TRIED):
            at = page.text.find(text, at + 1)
            if at < 0:
                break
            seen = page.layout.visibility_at(at, at + len(text))
            if seen is Visibility.VISIBLE:
                return EMPTY_LAYOUT
        return EMPTY_LAYOUT if seen is Visibility.VISIBLE else TextLayout((VisibilitySpan(0, len(text), seen),))

    def _in_cells(self, selector: Selector, label: str) -> Iterator[Found]:
        source = self.page.text
        of_others = self._is_below_others if selector.subject else _of_nobody
        cells = labelled(source, label, of_others)
        lines = labelled_lines(source, label, self._is_line_of_others) if selector.subject else iter(())
        for cell in chain(cells, lines):
            span = (cell.start, cell.end)
            others = None if self.page.is_of_head_office(cell.start) else cell.others
            found = Found(cell.text, source, cell.quote, span=span, others=others, at=cell.start)
            if selector.pattern is None:
                yield found
            else:
                for match in _matches(selector.pattern, cell.text):
                    yield found._replace(text=_group(match))

    def _is_below_others(self, start: int, end: int) -> bool:
        return self.page.is_headed_by_others(start, end) or self.page.is_below_another(start)

    def _is_in_foreign_part(self, start: int, end: int) -> bool:
        return self.page.is_of_others(start, end) or self.page.is_headed_by_others(start, end)

    def _is_line_of_others(self, start: int, end: int) -> bool:
        return self._is_in_foreign_part(start, end) or self.page.is_below_another(start)

    def _is_of_others(self, selector: Selector, start: int, end: int) -> bool:
        """Below `Suppliers`, the facts are those of others; the deeds may be the organization's own."""
        if self.page.is_of_others(start, end) if selector.sentence else self._is_in_foreign_part(start, end):
            return True
        text = self.page.text.text
        if self.page.is_announced_by_others(start) or (selector.sentence and self.page.is_said_by_another(start)):
            return True
        if selector.sentence and self.page.is_announced_as_plan(start) and not _states_deed(text[start:end]):
            return True
        line = text.rfind("\n", 0, start) + 1
        asked = _QUESTION.search(text[max(0, line - 1, start - _MAX_QUESTION) : start])
        return selector.own and asked is not None and not attribution.is_own(asked.group())

    def _in_text(self, selector: Selector) -> Iterator[Found]:
        text = self.page.text.text[: _MAX_TEXT if self.page.file_kind is None else _MAX_FILE_TEXT]
        for match in _matches(selector.pattern or "", text):
            start, end = sentence_around(text, *match.span())
            is_of_site = selector.own or selector.asserted or selector.subject
            if is_of_site and self._is_of_others(selector, start, end):
                continue
            if selector.asserted and self.page.is_beside_name(match.start()):
                continue
            said = text[start:end]
            if selector.sentence and said.count("\t") > 1:
                continue  # a row of figures is no sentence
            value = said.rstrip(".!?。！？") if selector.sentence else _group(match)
            before, after = text[start : match.start()], text[match.end() : end]
            of = match.groupdict().get("of")
            # a note such as `Since 1911` is short: its words are the label of the value
            span = (start, end) if selector.asserted else None
            yield Found(value, self.page.text, said, before, after, span=span, at=match.start(), of=of)


def _states_deed(sentence: str) -> bool:
    """A whole sentence about what was done, not a note: `Waste: 40 percent less` below `Goals`."""
    return attribution.is_own(sentence) or _DONE.search(sentence) is not None


def _of_nobody(_start: int, _end: int) -> bool:
    return False


def _matches(pattern: str, text: str) -> Iterator[Any]:
    for count, match in enumerate(compiled(pattern).finditer(text)):
        if count == _MAX_FOUND:
            return
        yield match


def _group(match: Any) -> str:
    """Return the group `value`, or the first group that matched, or the whole match."""
    groups = [match.groupdict().get("value"), *match.groups()]
    return str(next((one for one in groups if one is not None), match.group(0)))
