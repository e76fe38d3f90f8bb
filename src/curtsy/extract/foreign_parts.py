"""Parts of a page that others say, or that are about others: testimonials, case studies, quotations, teasers."""

from __future__ import annotations

import re

from curtsy.content import text as prose
from curtsy.content.document import Document

_TAGS = frozenset(
    ("blockquote", "q", "cite", "figure", "div", "section", "article", "li", "ul", "aside", "p", "figcaption")
)
_ALWAYS = frozenset(("blockquote", "q", "cite", "aside", "figcaption"))
_MARKS = re.compile(
    r"(?:^|[\s_\-])(?:testimonials?|quotes?|quotation|reviews?|case-?stud(?:y|ies)|customer-?stor(?:y|ies)|success-?stor(?:y|ies)|"
    r"stories|customers?|clients?|partners?|suppliers?|sponsors?|teasers?|related|press-?review|kundenstimmen|referenzen?|"
    r"temoignages?|temoignage|casos?|examples?|beispiele?)(?:$|[\s_\-])",
    re.IGNORECASE,
)
_MAX_SHARE = 0.8


def spans(document: Document) -> list[tuple[int, int]]:
    """Return their spans of the visible text. An element with nearly the whole page is not such a part."""
    visible = prose.read(document.page_tree(), spans_of=_TAGS)
    most = _MAX_SHARE * max(len(visible.text), 1)
    return [
        (one.start, one.end)
        for one in visible.spans
        if one.end > one.start and one.end - one.start < most and _is_foreign(one)
    ]


def _is_foreign(span: prose.Span) -> bool:
    if span.node.tag in _ALWAYS:
        return True
    attributes = span.node.attributes
    return _MARKS.search(f"{attributes.get('class') or ''} {attributes.get('id') or ''}") is not None
