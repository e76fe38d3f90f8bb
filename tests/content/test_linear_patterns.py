"""Whatever a page holds, reading it takes time in proportion to its size: every pattern, and every reader.

The patterns are found, not listed: all that the package's modules hold when they are imported. With which methods one
is used is read from the source of its module; where that cannot be told, it is tried with all of them.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from adversary import inputs, is_steep

import curtsy
from curtsy.content.charset import charset_of
from curtsy.content.document import Document
from curtsy.content.head import is_html, refresh_target, robots_tag
from curtsy.content.links import LinkMemo, hrefs
from curtsy.content.needs_browser import needs_browser
from curtsy.content.parser_limits import tame
from curtsy.content.sitemaps import sitemap
from curtsy.content.structured import tidy
from curtsy.content.tree_reading import read
from curtsy.extract.chunks import passages
from curtsy.extract.prompts import plain, speaks_to_a_model
from curtsy.grounding.dates import dates, times
from curtsy.grounding.folded_text import count_words, fold
from curtsy.grounding.near_copies import find_quote
from curtsy.grounding.number_words import numbers_in_words
from curtsy.grounding.numbers import numbers
from curtsy.grounding.spelled_numbers import spelled_numbers
from curtsy.rules.politeness import retry_after
from curtsy.rules.robots import Robots
from curtsy.rules.urls import normalise

#: fetched content never reaches these; core/failpoints.py has a pattern that backtracks on purpose
_ELSEWHERE = (
    "curtsy.tinyweb", "curtsy.cli", "curtsy.airflow", "curtsy.scrapy", "curtsy.__main__", "curtsy.core.settings",
    "curtsy.store.migrations", "curtsy.services.local_model_server",
    "curtsy.core.failpoints", "curtsy.grounding.user_code",
)  # fmt: skip
_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "split")


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(curtsy.__path__, "curtsy."):
        if not found.name.startswith(_ELSEWHERE):
            try:
                yield importlib.import_module(found.name)
            except ImportError:  # of an extra that is not installed
                continue


def _held(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict) and depth < 4:
        for inner in (*value.keys(), *value.values()):
            yield from _held(inner, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset) and depth < 4:
        for inner in value:
            yield from _held(inner, depth + 1)


def _uses(tree: ast.Module, name: str) -> frozenset[str]:
    """The methods of a pattern that its module calls; all, if it is also used in another way."""
    found: set[str] = set()
    plain = used = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            found.add(node.attr)
            plain += 1
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            used += 1
    return frozenset(found & set(_METHODS)) if plain == used and found else frozenset(_METHODS)


def _patterns() -> dict[str, tuple[re.Pattern[Any], frozenset[str]]]:
    found: dict[re.Pattern[Any], tuple[str, set[str]]] = {}
    for module in _modules():
        if not (module.__file__ or "").endswith(".py"):
            continue  # compiled
        tree = ast.parse(Path(module.__file__ or "").read_text())
        for name, value in vars(module).items():
            for pattern in _held(value):
                # A container's patterns, and those that another module imports, are used in ways not seen here.
                is_own = isinstance(value, re.Pattern)
                methods = _uses(tree, name) if is_own else frozenset(_METHODS)
                known = found.setdefault(pattern, (f"{module.__name__}.{name}", set()))
                known[1].update(methods)
        for literal in _inline(tree):
            found.setdefault(literal[0], (f"{module.__name__}:{literal[2]}", set()))[1].add(literal[1])
    return {
        f"{name} {pattern.pattern!r:.60}": (pattern, frozenset(methods)) for pattern, (name, methods) in found.items()
    }


def _inline(tree: ast.Module) -> Iterator[tuple[re.Pattern[Any], str, int]]:
    """`re.sub(r"...", ...)` with a pattern that stands there."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in _METHODS
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield re.compile(node.args[0].value), node.func.attr, node.lineno


PATTERNS = _patterns()


def _run(pattern: re.Pattern[Any], method: str, text: Any) -> Callable[[], object]:
    if method == "finditer":
        return lambda: sum(1 for _ in pattern.finditer(text))
    if method == "sub":
        return lambda: pattern.sub(text[:0], text)
    return lambda: getattr(pattern, method)(text)


def test_the_patterns_are_found() -> None:
    names = " ".join(PATTERNS)
    assert len(PATTERNS) > 100
    for one in (
        "content.charset._USUAL_START",
        "content.sitemaps._TEXT_URL",
        "grounding.dates.",
        "extract.chunks.",
        "rules.robots._LINE_END",
    ):
        assert f"curtsy.{one}" in names


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_time_in_proportion_to_its_input(name: str) -> None:
    pattern, methods = PATTERNS[name]
    # What searches finds all that the others do: one pass over the input tells as much as three.
    tried = methods - {"findall", "sub", "split"} | ({"finditer"} if methods & {"findall", "sub", "split"} else set())
    if "finditer" in tried:
        tried -= {"search"}
    if "fullmatch" in tried:
        tried -= {"match"}  # it goes back at least as often
    steep = []
    for make in inputs(pattern):
        for method in sorted(tried):

            def work(size: int, make: Any = make, method: str = method) -> Callable[[], object]:
                text = make(size)
                given = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
                return _run(pattern, method, given)

            if (said := is_steep(work, 1 << 13)) is not None:
                steep.append(f"{method} of {make(40)!r}: {said}")
                break
        if len(steep) == 3:
            break
    assert not steep, "\n".join(steep)


# Whole readers: what is linear in its patterns may still go over the page again and again.

PIECES = (
    "\n", " ", "a", "é", "ﬁ", "<", "<a", "<a ", "<a href=x>", "<a href='", '<a href="x"', "<!--", "<!", "</", "</p>",
    "<p>", "<b>", "<b><p>", "<i></b>", "<div>", "<table>", "<td>x", "<li>", "<script>", "</script>", "<script><!--",
    "<title>", "<meta ", "<meta charset=", "<meta name=robots content=x>", '<meta http-equiv=refresh content="1">',
    "<base href=x>", "<link rel=canonical href=x>", "<svg><title>", "<h1>", "<br>", "<q>", "<pre>", "<code>`",
    "<em>*", "<img alt=[ src=x>", "<span itemprop=a>", "<div itemscope itemtype=x>", "<div typeof=a property=b>",
    '<script type="application/ld+json">[', "&", "&amp;", "&#", "&#x1", "]]>", "<![CDATA[", "<url><loc>",
    "<loc>http://a/</loc>", "<item><link>x</link>", "<?xml ", "{", "[", '{"a":', '"', "\\", "1", "1 ", "1,", "1.",
    "1-", "1:", "1/1/", "12 May ", "May ", "2020-01-", "one ", "two hundred ", "million ", "€", "$1", "% ", "minus ",
    "a.", "a@", "a@b.", "a at ", "[at]", "[dot]", " dot ", "http://", "http://a/ ", "www.a", "%", "%e9", "(", "+49 (",
    "0049", "...", "[...]", "not ", "©", "-\n", "-\r\n ", ",", ";", "|", " - ", " | ", ". A", "word ",
    "User-agent: *\n", "Disallow: /a*b\n", "Disallow: /", "Allow: *", "Sitemap: x\n", "Crawl-delay: 1", "#", "\r",
    "\0", "\u3042",
)  # fmt: skip


def _page(data: bytes) -> Document:
    return Document.parse(data, "text/html; charset=utf-8", "http://a.test/b/c")


def _heading(data: bytes) -> object:
    page = _page(data)
    return needs_browser(page, data), LinkMemo().resolve_all(page.base_url, hrefs(page))


def _rules(data: bytes) -> object:
    rules = Robots.parse(data)
    return [rules.allows(f"http://a.test/{'a' * 500}{n}", "curtsy") for n in range(3)]


def _passages(text: str) -> object:
    return passages(text), [speaks_to_a_model(text), plain(text)]


#: what a site sends, as bytes
OF_BYTES: dict[str, Callable[[bytes], object]] = {
    "charset": lambda data: charset_of(data, None),
    "charset of XML": lambda data: charset_of(b"<?xml " + data, "text/xml"),
    "is it HTML": lambda data: is_html(None, data),
    "taming": lambda data: tame(data + b" " * 70_000),
    "parsing and links": _heading,
    "reading": lambda data: read(data, "text/html; charset=utf-8", "http://a.test/b/c", "curtsy", False),
    "text": lambda data: _page(data).text(),
    "Markdown": lambda data: _page(data).markdown(),
    "structured data": lambda data: tidy(_page(data).structured()),
    "sitemap": lambda data: sitemap(data, 50_000),
    "sitemap in XML": lambda data: sitemap(b"<urlset>" + data, 50_000),
    "feed": lambda data: sitemap(b"<feed>" + data, 50_000),
    "robots.txt": _rules,
}
#: what is found in it, as text
OF_TEXT: dict[str, Callable[[str], object]] = {
    "header: type": lambda text: charset_of(b"", text),
    "header: robots": lambda text: robots_tag([text], "curtsy"),
    "header: retry-after": lambda text: retry_after(text, 0.0),
    "refresh": lambda text: refresh_target({"http-equiv": "refresh", "content": text}),
    "address": lambda text: normalise(text[:4000], "http://a.test/"),
    "folding": fold,
    "words": count_words,
    "numbers": lambda text: list(numbers(text)),
    "numbers in words": lambda text: list(numbers_in_words(text)),
    "numbers in words of other languages": lambda text: list(spelled_numbers(text, "de")),
    "dates": lambda text: list(dates(text)),
    "times": lambda text: list(times(text)),
    "passages": _passages,
    "quotes": lambda text: find_quote(fold(text), "a value that stands ... nowhere in it"),
}


@pytest.mark.parametrize("name", OF_BYTES)
def test_a_reader_of_bytes_takes_time_in_proportion(name: str) -> None:
    found = []
    for piece in PIECES:
        data = piece.encode()
        said = is_steep(lambda n, d=data: partial(OF_BYTES[name], d * (n // len(d))), 1 << 15)  # type: ignore[misc]
        found += [] if said is None else [f"{piece!r}: {said}"]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", OF_TEXT)
def test_a_reader_of_text_takes_time_in_proportion(name: str) -> None:
    found = []
    for piece in PIECES:
        said = is_steep(lambda n, p=piece: partial(OF_TEXT[name], p * (n // len(p))), 1 << 13)  # type: ignore[misc]
        found += [] if said is None else [f"{piece!r}: {said}"]
    assert not found, "\n".join(found)
