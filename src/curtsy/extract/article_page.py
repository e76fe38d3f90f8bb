"""The parts of an article's page: its heading, and marked elements that belong to the article and not to a teaser.

ArticlePage    the heading, bylines and dates of a page, each with its span of the visible text
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property

from selectolax.lexbor import LexborNode

from curtsy.content import text as prose
from curtsy.content.document import Document
from curtsy.extract import article_heading, credits, foreign_parts, signatures
from curtsy.extract.article_marks import (
    AUTHOR_PAGE,
    BYLINE,
    DATED,
    MAX_DEPTH,
    PUBLISHED,
    Part,
    ancestors,
    chain,
    is_in_article,
    is_other,
    is_published,
    is_updated,
    lines_of,
    marks_of,
    stated_by,
)
from curtsy.extract.article_words import any_of, marked
from curtsy.extract.bylines import is_labelled

_TAGS = frozenset(
    ("a", "span", "div", "p", "address", "time", "li", "h1", "h2", "h3", "h4", "h5", "h6", "cite", "em", "strong", "b",
     "small", "section", "header", "figcaption", "dd", "td", "abbr", "i")
)  # fmt: skip
#: parts of a page that are about other things, unless they contain the heading
_ASIDE = marked("aside_marks")
#: the end of an article: `post-footer`
_OWN_FOOTER = re.compile(r"\b(?:post|entry|article|asset|story|node|blog|hero|header)[_\-]{0,2}footer\b", re.IGNORECASE)
#: the box of the author, which may have its buttons: `author-share`
_OWN_AUTHOR = re.compile(r"\b(?:author|byline)s?[_\-]{1,2}(?:share|card|social|credit|list|info)", re.IGNORECASE)
_EXACT = re.compile(r"author-?name|byline", re.IGNORECASE)
_CREDITS = re.compile(r"(?:^|[\s_\-])credits?(?:$|[\s_\-])", re.IGNORECASE)
_DATE_LABEL = re.compile(
    rf"(?:[^|｜]{{0,40}}[|｜])?\W{{0,3}}{any_of('date_labels')}(?:\s{{0,2}}[:：]\s{{0,2}}|(?=\s\d)|$|(?=\d))",
    re.IGNORECASE,
)
#: `This entry was posted on 5 May 2024 by`, `Dieser Artikel wurde am 5. Mai 2024 veröffentlicht`
_POSTED = re.compile(rf"\W{{0,3}}{any_of('this_post')} [^\n]{{0,120}}?{any_of('posted_verbs')}\b", re.IGNORECASE)
_AUTHOR_LABEL = re.compile(
    rf"\W{{0,3}}(?:{any_of('author_labels')}(?:\s{{0,2}}[:：／]\s{{0,2}}|\s)|{any_of('author_phrases')}\s)\S",
    re.IGNORECASE,
)
_ASIDE_TAGS = frozenset(("aside", "nav", "figure", "figcaption", "form", "blockquote"))
#: an item of microdata without the heading of the page is a teaser
_OTHER_ITEM = re.compile(r"/(?:[A-Za-z]{0,20}Article|BlogPosting|[A-Za-z]{0,20}Event|Product|CreativeWork|ListItem)$")
_MAX_MARKED = 400
_MAX_TEXT = 160
#: characters of a line that is nothing but a date
_MAX_DATE = 40
_LEAST_PIECE = 3
_NEAR_BEFORE, _NEAR_AFTER = 4, 12
#: characters after the heading in which a date may be beside it: in an aside, in the box of the author
_BESIDE_HEADING = 300
#: between two linked names: `, ` or ` and `
_MAX_BETWEEN_NAMES = 6
#: bounds of the search for labeled dates outside of the lines around the heading
_MAX_LABELLED = 20
_MAX_LABELLED_AUTHOR = 80


class ArticlePage:
    """Reads the visible text once more on first use, with the spans of its elements."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._beside: dict[int, bool] = {}

    @cached_property
    def _visible(self) -> prose.VisibleText:
        return prose.read(self._document.page_tree(), spans_of=_TAGS | foreign_parts.TAGS)

    @property
    def text(self) -> str:
        return self._visible.text

    @cached_property
    def _spans(self) -> list[prose.Span]:
        return [one for one in self._visible.spans if one.node.tag in _TAGS]

    @cached_property
    def _heading(self) -> prose.Span | None:
        return article_heading.main(self._document, self.text, self._spans)

    @property
    def heading(self) -> tuple[int, int] | None:
        return None if self._heading is None else (self._heading.start, self._heading.end)

    @property
    def next_heading(self) -> int:
        """Where the next heading begins."""
        least = 0 if self._heading is None else self._heading.end
        found = (one.start for one in self._spans if one.node.tag in ("h1", "h2", "h3", "h4") and one.start >= least)
        return min(found, default=len(self.text))

    @cached_property
    def _elsewhere(self) -> foreign_parts.Spans:
        return foreign_parts.Spans(foreign_parts.elsewhere(self._visible, self.heading))

    @cached_property
    def _boxes(self) -> foreign_parts.Spans:
        return foreign_parts.Spans(foreign_parts.boxes(self._visible, self.heading))

    def is_elsewhere(self, start: int, *, in_boxes: bool = False) -> bool:
        """Whether a part that begins here is about something else than the page: below `More events`, in a comment, or
        `in_boxes`, in an aside with the name of something else."""
        return start in self._elsewhere or (in_boxes and start in self._boxes)

    @cached_property
    def _around_heading(self) -> frozenset[int]:
        """Elements that contain the heading."""
        return frozenset() if self._heading is None else frozenset(ancestors(self._heading.node))

    @cached_property
    def _many_articles(self) -> bool:
        root = self._document.tree.root
        found = [] if root is None else root.css("article")[:50]
        return sum(one.mem_id not in self._around_heading for one in found) > 1

    @cached_property
    def parts(self) -> list[Part]:
        """Marked elements with short texts, in the order of the text."""
        found: list[Part] = []
        for span in self._spans:
            node = span.node
            tag = node.tag or ""
            attributes = node.attributes
            marks = marks_of(node)
            if not marks and tag not in ("time", "address", "abbr"):
                continue
            if span.end - span.start > _MAX_TEXT or self.is_beside(node) or self.is_elsewhere(span.start):
                continue
            stated = stated_by(tag, attributes)
            for start, end in self._pieces(span.start, span.end):
                rel = attributes.get("rel") or ""
                found.append(Part(start, end, self.text[start:end], marks, tag, stated, rel))
            if len(found) >= _MAX_MARKED:
                break
        return sorted(found, key=lambda one: (one.start, one.end))

    @cached_property
    def _seams(self) -> list[int]:
        """Where an element begins or ends within a word of the text: `<span>Nora Field</span><span>5 May</span>`."""
        text, size = self.text, len(self.text)
        every = {at for one in self._spans for at in (one.start, one.end)}
        return sorted(at for at in every if 0 < at < size and text[at - 1].isalnum() and text[at].isalnum())

    def _pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """Split a span at its seams. Single letters are the first of a word in another style."""
        inner = self._seams[bisect_right(self._seams, start) : bisect_left(self._seams, end)]
        cuts = [at for at in inner if at - start >= _LEAST_PIECE and end - at >= _LEAST_PIECE]
        return list(zip([start, *cuts], [*cuts, end], strict=True))

    def is_beside(self, node: LexborNode) -> bool:
        """Return whether it is in a teaser, a comment, a menu or a footer."""
        chain: list[int] = []
        at: LexborNode | None = node
        beside = False
        while at is not None and len(chain) < MAX_DEPTH:
            key = at.mem_id
            if key in self._around_heading:
                break
            if key in self._beside:
                beside = self._beside[key]
                break
            chain.append(key)
            if self._marks_beside(at):
                beside = True
                break
            at = at.parent
        for key in chain:
            self._beside[key] = beside
        return beside

    def _marks_beside(self, node: LexborNode) -> bool:
        tag = node.tag or ""
        if tag in _ASIDE_TAGS or (tag == "footer" and not is_in_article(node)):
            return True
        if tag == "article" and self._many_articles:
            return True
        if self._heading is not None and _OTHER_ITEM.search(node.attributes.get("itemtype") or ""):
            return True
        marks = f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}"
        marks = _OWN_FOOTER.sub(" ", marks) if "foot" in marks else marks
        marks = _OWN_AUTHOR.sub(" ", marks) if "author" in marks or "byline" in marks else marks
        return len(marks) > 1 and tag not in ("html", "body") and _ASIDE.search(marks) is not None

    @cached_property
    def lines(self) -> list[tuple[int, int]]:
        """The lines around the heading."""
        every = lines_of(self.text)
        if self._heading is None:
            return []
        at = next((number for number, (_, end) in enumerate(every) if end >= self._heading.end), 0)
        near = every[max(0, at - _NEAR_BEFORE) : at] + every[at + 1 : at + 1 + _NEAR_AFTER]
        beside = [(one.start, one.end) for one in self._spans if one.end > one.start and self.is_beside(one.node)]
        near = [line for line in near if not any(start <= line[0] and line[1] <= end for start, end in beside)]
        return [piece for line in near if not self.is_elsewhere(line[0]) for piece in self._pieces(*line)]

    def bylines(self) -> Iterator[tuple[Part, bool]]:
        """Yield (part, whether it is marked): marked elements, the more exact ones first, then labeled lines."""
        marked = [one for one in self.parts if one.text and BYLINE.search(one.marks)]
        exact = [one for one in marked if "author" in one.rel or _EXACT.search(one.marks)]
        for one in dict.fromkeys([*exact, *marked, *(one for one in self.parts if one.tag == "address" and one.text)]):
            yield one, True
        for start, end in [*self.lines, *self._credit_lines]:
            for first, last in self._credited(start, end):
                yield Part(first, last, self.text[first:last], "", "", "", ""), False
        if (linked := self._linked_authors()) is not None:
            yield linked, False
        if (sole := self._sole_author()) is not None:
            yield sole, True
        yield from ((one, False) for one in self._labelled_authors())
        for first, last in self._signatures():
            if not self.is_line_beside(self.text.rfind("\n", 0, first) + 1):
                yield Part(first, last, self.text[first:last], "", "", "", ""), False

    def _signatures(self) -> Iterator[tuple[int, int]]:
        yield from (one[:2] for one in credits.in_brackets(self.text))
        if self._heading is not None:
            near = [one for one in self._spans if self._heading.end <= one.start < self._heading.end + _BESIDE_HEADING]
            yield from signatures.beside_date(self.text, near, self._heading.end)
            lines = self._document.main_text().rstrip().rsplit("\n", 1)
            yield from signatures.below(self.text, self._spans, lines[-1])

    def _credited(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the credits of authors in a line, each up to the end of its element: `<i>By Nora Field</i> Oslo`."""
        text = self.text[start:end]
        if len(text) > _MAX_TEXT:
            return
        if credits.reported(text):
            yield start, end
        for at in credits.own(text):
            first = start + at
            label = credits.LABEL.match(text[at:])
            begins = {first, first + len(label[0])} if label else {first}
            ends = [one.end for one in self._spans if one.start in begins and first + _LEAST_PIECE < one.end < end]
            last = max((one for one in ends if not credits.goes_on(self.text[one:end])), default=end)
            # The label alone is no credit.
            yield first, last if is_labelled(self.text[first:last]) else end

    @cached_property
    def _credit_lines(self) -> list[tuple[int, int]]:
        """Lines below the heading in elements that are marked as credits, most of them of photos."""
        if self._heading is None:
            return []
        first = self._heading.end
        return [
            (one.start, one.end) for one in self._spans
            if first <= one.start < first + _BESIDE_HEADING and 0 < one.end - one.start <= _MAX_TEXT
            and _CREDITS.search(marks_of(one.node)) and "\n" not in self.text[one.start : one.end]
            and credits.names_text(self.text[one.start : one.end])
            and (one.node.parent is None or not self.is_beside(one.node.parent))
        ]  # fmt: skip

    def _linked_authors(self) -> Part | None:
        """Names around the heading that lead to the pages of their authors, up to the first other text."""
        lines = self.lines
        linked = [
            one for one in self._spans
            if lines and one.node.tag == "a" and lines[0][0] <= one.start < one.end <= lines[-1][1]
            and AUTHOR_PAGE.search(one.node.attributes.get("href") or "") and not self.is_beside(one.node)
        ]  # fmt: skip
        if not linked:
            return None
        start, end = linked[0].start, linked[0].end
        for one in linked[1:]:
            if end <= one.start <= end + _MAX_BETWEEN_NAMES:
                end = one.end
        return Part(start, end, self.text[start:end], "", "a", "", "")

    def _sole_author(self) -> Part | None:
        """The only name that the page marks with `rel="author"`, wherever it is."""
        found = {
            self.text[one.start : one.end].strip(): one
            for one in self._spans
            if one.node.tag == "a"
            and "author" in (one.node.attributes.get("rel") or "").split()
            and not any(at.tag == "footer" or is_other(at) for at in chain(one.node, self._around_heading))
        }
        found.pop("", None)
        if len(found) != 1:
            return None
        name, one = found.popitem()
        return Part(one.start, one.end, name, "", "a", "", "author")

    def _labelled_authors(self) -> list[Part]:
        """The only line of the page that names its author with a label: `Author: Nora Field` beside the text."""
        found: dict[str, Part] = {}
        for start, end in lines_of(self.text):
            text = self.text[start:end]
            if len(text) > _MAX_LABELLED_AUTHOR or not _AUTHOR_LABEL.match(text) or self.is_line_beside(start):
                continue
            found[text.strip()] = Part(start, end, text, "", "line", "", "")
        return list(found.values()) if len(found) == 1 else []

    def dated(self) -> Iterator[tuple[Part, str]]:
        """Yield (part, role): `published`, `modified`, or `dated` if the marks do not say."""
        # `<span class="posted-on"><time class="updated">` has the day of the update first.
        published = {one for one in self.parts if is_published(one)}
        updated = {(one.start, one.end) for one in self.parts if one not in published and is_updated(one)}
        for one in self.parts:
            if (one.start, one.end) in updated:
                yield one, "modified"
            elif one in published:
                yield one, "published"
        for one in self.parts:
            if one.tag == "time" or (one.tag == "abbr" and one.stated) or DATED.search(one.marks):
                yield one, "modified" if (one.start, one.end) in updated else "dated"
        for start, end in self.lines:
            if end - start <= _MAX_TEXT:
                role = "modified" if (start, end) in updated else "dated"
                yield Part(start, end, self.text[start:end], "", "line", "", ""), role

    def beside_heading(self) -> Iterator[Part]:
        """Yield pieces of lines right after the heading that are in an aside or a box for sharing."""
        if self._heading is None:
            return
        first, last = self._heading.end, self._heading.end + _BESIDE_HEADING
        for start, end in lines_of(self.text):
            if first <= start < last and not self.is_line_beside(start):
                for piece in self._pieces(start, end):
                    yield Part(*piece, self.text[slice(*piece)], "", "line", "", "")

    def marked_days(self) -> Iterator[Part]:
        """Yield elements that are marked as the day of publication, without those in teasers and comments."""
        for one in self._spans:
            if not 0 < one.end - one.start <= _MAX_TEXT:
                continue
            marks = marks_of(one.node)
            if not marks or PUBLISHED.search(marks) is None:
                continue
            others = any(map(is_other, chain(one.node, self._around_heading)))
            if not others and not self.is_elsewhere(one.start):
                stated = stated_by(one.node.tag or "", one.node.attributes)
                yield Part(one.start, one.end, self.text[one.start : one.end], marks, one.node.tag or "", stated, "")

    def short_lines(self) -> Iterator[Part]:
        for start, end in lines_of(self.text):
            if end - start <= _MAX_DATE and not self.is_line_beside(start):
                yield Part(start, end, self.text[start:end], "", "line", "", "")

    def stated_days(self) -> list[str]:
        """Return what `<meta itemprop="datePublished">` outside of the items of microdata states."""
        root = self._document.tree.root
        found = [] if root is None else root.css('meta[itemprop="datePublished"][content]')[:_MAX_LABELLED]
        return list(dict.fromkeys(one.attributes.get("content") or "" for one in found))

    def labelled(self) -> Iterator[Part]:
        """Yield short lines anywhere on the page that begin with a label of dates, with the line below a bare label."""
        every = lines_of(self.text)
        found = 0
        for number, (start, end) in enumerate(every):
            if _POSTED.match(self.text, start, end) and not self.is_line_beside(start):
                cut = min(end, start + _MAX_TEXT)
                yield Part(start, cut, self.text[start:cut], "", "sentence", "", "")
            if end - start > _MAX_TEXT or (label := _DATE_LABEL.match(self.text[start:end])) is None:
                continue
            if start + label.end() == end and number + 1 < len(every):
                end = every[number + 1][1]
            if end - start <= _MAX_TEXT and not self.is_line_beside(start):
                yield Part(start, end, self.text[start:end], "", "line", "", "")
                found += 1
            if found == _MAX_LABELLED:
                break

    def is_line_beside(self, start: int) -> bool:
        """Whether a line is in a teaser or a comment. Labels tell dates of the article in boxes at its side."""
        node = self._innermost.get(start)
        marked = node is not None and any(map(is_other, chain(node, self._around_heading)))
        return marked or self.is_elsewhere(start)

    @cached_property
    def _innermost(self) -> dict[int, LexborNode]:
        """The innermost element at the beginning of each line."""
        found: dict[int, LexborNode] = {}
        # An element comes after those in it.
        nested = (one for one in reversed(self._spans) if one.end > one.start)
        spans = sorted(nested, key=lambda one: (one.start, -one.end))
        around: list[prose.Span] = []
        at = 0
        for start, _ in lines_of(self.text):
            while at < len(spans) and spans[at].start <= start:
                while around and around[-1].end <= spans[at].start:
                    around.pop()
                around.append(spans[at])
                at += 1
            while around and around[-1].end <= start:
                around.pop()
            if around:
                found[start] = around[-1].node
        return found
