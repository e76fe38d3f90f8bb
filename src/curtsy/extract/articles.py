"""Headline, authors and dates of an article as the page shows them, and the check of authors in its metadata.

kind_of     which of these a leaf is, by its name
claims      what the page shows: the heading, bylines, dates in elements and lines, the date in the URL
credible    the claims of structured data without placeholders; a visible byline replaces authors that contradict it
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.extract import article_dates
from curtsy.extract.article_marks import Part, flat
from curtsy.extract.article_page import ArticlePage
from curtsy.extract.bylines import handle_in, is_company, is_person, is_placeholder, names_in, people, without_label
from curtsy.extract.recipes import is_recipe
from curtsy.extract.sources import PageSources
from curtsy.grounding.json_pointer import keys
from curtsy.grounding.schema import Leaf, Schema

#: names of leaves -> what they are
_KINDS = {
    "headline": ("headline", "title"),
    "author": ("author", "authors", "byline", "writer", "writers", "author_name", "authorname"),
    "published": (
        "published", "date_published", "datepublished", "publication_date", "publicationdate", "published_at",
        "published_date", "publish_date", "pubdate", "pub_date", "published_on", "date",
    ),
    "modified": ("modified", "updated", "date_modified", "datemodified", "updated_at", "last_updated", "last_modified"),
}  # fmt: skip
_KIND = {name: kind for kind, names in _KINDS.items() for name in names}
_ARTICLES = frozenset(
    (
        "Article",
        "NewsArticle",
        "BlogPosting",
        "CreativeWork",
        "Recipe",
        "Report",
        "ScholarlyArticle",
        "TechArticle",
        "WebPage",
    )
)
#: kinds of dates
_DATES = ("published", "modified")
_DAY_S = 86_400
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TITLES = frozenset(("title", "headline", "name"))
#: names that say of which kind a date is only by their company
_VAGUE_DATE = re.compile(
    r"/(?:date|dc\.date|dcterms\.date|dc:date|dateCreated|uploadDate|created|displaydate)(?:/0)?$", re.IGNORECASE
)
#: marks of elements that are nothing but the name of a user; `marks` has the value of `rel` too
_HANDLE_MARKS = re.compile(r"(?:^|\s)(?:author|fn|username|author-name)(?:$|\s)", re.IGNORECASE)
_LAST_FIRST = re.compile(r"[^\W\d_][\w'’.-]{1,30}, [^\W\d_][\w'’.-]{1,30}")
_MARKS_OF_TITLES = re.compile(r" [|–—·•»-] ")
_SITE_KEYS = ("og:site_name", "application-name", "twitter:site")


def kind_of(schema: Schema, leaf: Leaf) -> str | None:
    """Return `headline`, `author`, `published` or `modified`, if the schema can be about an article.

    A leaf `date` alone is too vague: an author or a title must be next to it.
    """
    names = [name for name in keys(leaf.path) if name != "*"]
    if len(names) != 1 or leaf.type not in ("string", "date"):
        return None
    kind = _KIND.get(re.sub(r"(?<=[a-z])([A-Z])", r"_\1", names[0]).lower()) or _KIND.get(names[0].lower())
    if kind is None or (schema.types and not set(schema.types) & _ARTICLES):
        return None
    if names[0].lower() in ("date", "title") and not schema.types:
        others = {keys(one.path)[0].lower() for one in schema.leaves} - {names[0].lower()}
        of_article = set(_KINDS["author"]) | (_TITLES if kind == "published" else set(_KINDS["published"]))
        return kind if others & of_article else None
    return kind


def claims(
    schema: Schema, page: PageSources, leaves: Iterable[Leaf], compared: Collection[Leaf] = ()
) -> Iterator[Claim]:
    """Yield what the page shows for the leaves that are missing, best first for each.

    The metadata state the leaves in `compared`. The page contradicts them only with a date that it calls the day of
    publication: dates without a word for it are often those of updates, comments and photos.
    """
    wanted = [(leaf, kind) for leaf in leaves if (kind := kind_of(schema, leaf)) is not None]
    shown = page.article
    if not wanted or shown is None:
        return
    for leaf, kind in wanted:
        if leaf in compared and kind != "published":
            continue
        if kind in _DATES:
            found = article_dates.claims(page, shown, leaf, kind, only_labelled=leaf in compared)
            yield from (one for one in found if not (_is_past(schema, leaf) and is_ahead(one.value)))
        elif kind == "headline":
            yield from _headline(page, shown, leaf, site_names(page))
        elif kind == "author":
            yield from _authors(page, shown, leaf, _no_authors(schema, page))


def _is_past(schema: Schema, leaf: Leaf) -> bool:
    """Return whether it is a day of publication; a leaf `date` of a schema without types may be that of a concert."""
    return kind_of(schema, leaf) in _DATES and (bool(schema.types) or keys(leaf.path)[0].lower() != "date")


def is_ahead(value: Any, now_s: float | None = None) -> bool:
    """Return whether a date is after tomorrow: nothing was published then. Dates of other zones may be tomorrow's."""
    day = time.strftime("%Y-%m-%d", time.gmtime((time.time() if now_s is None else now_s) + _DAY_S))
    return isinstance(value, str) and _ISO_DAY.match(value) is not None and value[:10] > day


def heading(page: PageSources, leaf: Leaf) -> Iterator[Claim]:
    """Yield the page's main heading as the name of its item. The site of a festival has its name."""
    if page.article is not None:
        is_titled = page.article.heading is not None and flat(page.title or "") == flat(
            page.article.text[slice(*page.article.heading)]
        )
        yield from _headline(page, page.article, leaf, [] if is_titled else site_names(page))


# Headline


def _headline(page: PageSources, shown: ArticlePage, leaf: Leaf, others: Sequence[str]) -> Iterator[Claim]:
    if leaf.type == "string" and shown.heading is not None:
        start, end = shown.heading
        value = " ".join(shown.text[start:end].split())
        if not is_placeholder(value, others):
            source = Source(SourceKind.ATTRIBUTE, page.page, page.url, value, "css:h1")
            yield Claim(path=leaf.path, value=value, rung=Rung.SELECTOR, source=source, quote=value)


# Authors


def site_names(page: PageSources) -> list[str]:
    """Return the names of the site and its publisher, which are no authors."""
    found: list[str] = []
    for entry in page.data:
        data = entry.get("data")
        if isinstance(data, dict):
            # Some pages have their own title as the name of the site.
            own = data.get("og:title")
            found += [str(data[key]) for key in _SITE_KEYS if isinstance(data.get(key), str) and data[key] != own]
            for one in _members(data):
                publisher = one.get("publisher")
                if isinstance(publisher, dict) and isinstance(publisher.get("name"), str):
                    found.append(publisher["name"])
                if str(one.get("@type")) in ("WebSite", "Organization", "NewsMediaOrganization"):
                    found += [one["name"]] if isinstance(one.get("name"), str) else []
    host = (urlsplit(page.url).hostname or "").removeprefix("www.")
    return [*found, *_of_title(page), host]


def _of_title(page: PageSources) -> list[str]:
    """The last part of a title in a script without blanks: `姚明_网易新闻`; in `川辺町｜秋の市`, it is the heading."""
    title, shown = page.title or "", page.article
    heading = "" if shown is None or shown.heading is None else shown.text[slice(*shown.heading)]
    last = re.split(r"[|｜_–—-]", title)[-1].strip()
    return [last] if last not in (title.strip(), heading.strip()) and last and not last.isascii() else []


def _members(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield data
    graph = data.get("@graph")
    yield from (one for one in (graph if isinstance(graph, list) else ())[:50] if isinstance(one, dict))


def _no_authors(schema: Schema, page: PageSources) -> list[str]:
    """The names of the site; a recipe may be by the site."""
    return [] if is_recipe(schema) else site_names(page)


def _authors(page: PageSources, shown: ArticlePage, leaf: Leaf, others: Sequence[str]) -> Iterator[Claim]:
    for part, marked in shown.bylines():
        said = names_in(part.text, marked=marked) or (handle_in(part.text) if _HANDLE_MARKS.search(part.marks) else [])
        names = [one for one in said if not _is_nobody(one, others)]
        if names:
            yield from _named(page, leaf, part, names)
            return


def _named(page: PageSources, leaf: Leaf, part: Part, names: Sequence[str]) -> Iterator[Claim]:
    if leaf.many:
        for number, name in enumerate(names):
            yield article_dates.of_span(page, leaf.path.replace("*", str(number)), name, part.start, part.end)
        return
    first, last = part.text.find(names[0]), part.text.find(names[-1])
    whole = part.text[first : last + len(names[-1])] if 0 <= first <= last else names[0]
    yield article_dates.of_span(page, leaf.path, " ".join(whole.split()), part.start, part.end)


def credible(schema: Schema, page: PageSources, found: Sequence[Claim]) -> list[Claim]:
    """Drop dates ahead, placeholders among the authors of structured data, and authors that the byline contradicts."""
    kinds = {leaf.path: kind_of(schema, leaf) for leaf in schema.leaves}
    found = [_headed(one, page) if kinds[schema.leaf_for(one.path).path] == "headline" else one for one in found]
    found = [one for one in found if not (_is_past(schema, schema.leaf_for(one.path)) and is_ahead(one.value))]
    found = _without_updates(found, [kinds[schema.leaf_for(one.path).path] for one in found])
    authors = [one for one in found if kinds[schema.leaf_for(one.path).path] == "author"]
    if not authors:
        return found
    others = _no_authors(schema, page)
    leaf = schema.leaf_for(authors[0].path)
    kept = [_cleaned(one) for one in authors if isinstance(one.value, str)]
    kept = [one for one in kept if not _is_nobody(one.value, others)]
    rest = [one for one in found if one not in authors]
    # Bylines on the page of a recipe are often those of readers.
    if page.article is not None and kept and not is_recipe(schema):
        visible = list(_authors(page, page.article, leaf, others))
        if visible and not _agree(visible, kept):
            return [*rest, *visible]
        if visible and any(_LAST_FIRST.fullmatch(one.value) for one in kept):
            return [*rest, *visible]  # `Field, Nora` in the metadata, Nora Field in the byline
        kept.sort(key=lambda one: bool(visible) and not _agree(visible, [one]))
    return [*rest, *_numbered(leaf, [name for one in _of_one_thing(kept) for name in _people(leaf, one, others)])]


def _without_updates(found: Sequence[Claim], kinds: Sequence[str | None]) -> list[Claim]:
    """Drop vague names of metadata, such as `date`, if a name of the day of publication states another day: they often
    state the last update."""
    days = [one for one, kind in zip(found, kinds, strict=True) if kind == "published"]
    if all(map(_is_vague, days)):
        return list(found)
    return [one for one in found if one not in days or not _is_vague(one)]


def _is_vague(claim: Claim) -> bool:
    return _VAGUE_DATE.search(claim.source.locator) is not None


def _is_nobody(name: str, others: Sequence[str]) -> bool:
    """Whether it is a placeholder or a company. If the name of a site is that of a person, the person is an author."""
    return is_company(name) or (is_placeholder(name, others) and (is_placeholder(name) or not is_person(name)))


def _of_one_thing(authors: Sequence[Claim]) -> list[Claim]:
    """Keep the authors of the first thing that has some, and of things that share one with it: others are teasers."""
    found: list[Claim] = []
    entry = None
    for one in authors:
        entry = _entry(one) if entry is None else entry
        if _entry(one) == entry or _agree(found, [one]):
            found.append(one)
    return found


def _entry(claim: Claim) -> str:
    return claim.source.locator.split("/", 2)[1] if claim.source.kind is SourceKind.STRUCTURED else ""


def _people(leaf: Leaf, claim: Claim, others: Sequence[str]) -> list[Claim]:
    """Return one claim for each name of a list; a leaf that is one text has them together."""
    names = people(claim.value, others)
    if not names:
        return [claim]
    if leaf.many:
        return [replace(claim, value=name) for name in names]
    end = claim.value.rfind(names[-1]) + len(names[-1])
    return [replace(claim, value=claim.value[:end])]


def _numbered(leaf: Leaf, authors: Sequence[Claim]) -> list[Claim]:
    """Number the authors of a list again, each once."""
    if not leaf.many:
        return list(authors)
    once = {_plain(one.value): one for one in reversed(authors)}
    kept = [one for one in authors if once[_plain(one.value)] is one]
    return [replace(one, path=leaf.path.replace("*", str(number))) for number, one in enumerate(kept)]


def _plain(name: str) -> str:
    return " ".join(name.casefold().split())


def _headed(claim: Claim, page: PageSources) -> Claim:
    """`Lock closed | Canal Post` -> `Lock closed`, if that is the heading, or the rest is the name of the site."""
    if not isinstance(claim.value, str):
        return claim
    for mark in _MARKS_OF_TITLES.finditer(claim.value):
        head, tail = claim.value[: mark.start()].strip(), claim.value[mark.end() :].strip()
        if head and is_placeholder(tail, site_names(page)):
            return replace(claim, value=head)
    return claim


def _cleaned(claim: Claim) -> Claim:
    value = without_label(claim.value)
    return claim if value == claim.value else replace(claim, value=value)


def _agree(visible: Sequence[Claim], kept: Sequence[Claim]) -> bool:
    shown = {word for one in visible for word in _words(one.value)}
    return any(shown & _words(one.value) for one in kept)


def _words(name: str) -> set[str]:
    return {word.strip(".,") for word in name.casefold().split() if len(word.strip(".,")) > 1}
