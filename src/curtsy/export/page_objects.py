"""Learned selectors as web-poet page objects: a Python file that needs web-poet and nothing of Curtsy.

Each template becomes a page object, each field a method that returns the text of the value, or None. The text is not
checked against the page as a record's value is.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NOT_NAME = re.compile(r"\W+")
_HEAD = '''"""web-poet page objects, written by `curtsy selectors export`. They need the package web-poet.

The fields return the texts of the values as the page states them. Nothing checks them: a page with a new layout gives
None or, in rare cases, another text.
"""

from web_poet import WebPage, field, handle_urls


def _folded(text):
    words = " ".join(text.casefold().split()).rstrip(" :\\uff1a")
    return "".join("#" if char.isdigit() else char for char in words)


def _text(node):
    return " ".join((node.xpath("string()").get() or "").split())


def _labels(node):
    """What labels an element: its row, term or column, the text before it, and its own beginning."""
    column = node.xpath("count(preceding-sibling::*)").get("0")
    found = [_text(node).partition(":")[0]]
    found += [_text(one) for one in node.xpath("preceding-sibling::*[self::th or self::dt][1]")]
    found += [_text(one) for one in node.xpath(f"ancestor::table[1]//tr[1]/th[{int(float(column)) + 1}]")]
    found += ["".join(node.xpath("preceding-sibling::node()//text() | preceding-sibling::text()").getall())]
    found += [_text(one) for one in node.xpath("preceding-sibling::*[1]")]
    return {_folded(one) for one in found}


def _cut(text, before, after):
    start = text.find(before) + len(before) if before in text else -1
    end = text.find(after, start) if after else len(text)
    return text[start:end].strip() or None if 0 <= start <= end else None


def _find(page, css, label=None, position=None, of=None, before="", after="", many=False):
    nodes = list(page.css(css))
    if label is not None:
        nodes = [node for node in nodes if all(part in _labels(node) for part in label.split(" | "))]
    if not many:
        nodes = [nodes[position - 1]] if position and len(nodes) == of else nodes if len(nodes) == 1 else []
    texts = [_cut(_text(node), " ".join(before.split()), " ".join(after.split())) for node in nodes]
    return texts if texts and None not in texts else None


def _one(page, *places):
    found = (_find(page, **place) for place in places)
    return next((texts[0] for texts in found if texts), None)


def _all(page, *places):
    found = (_find(page, **place, many=True) for place in places)
    return next((texts for texts in found if texts), [])
'''


def module_of(selectors: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """Return the text of a Python module, and the names of its page objects."""
    templates: dict[int, list[Mapping[str, Any]]] = {}
    for one in selectors:
        templates.setdefault(one["template"], []).append(one)
    parts, names = [_HEAD], []
    for number, many in templates.items():
        name = _class_name(many[0], number)
        names.append(name)
        parts.append(_class(name, many))
    return "\n\n".join(parts), names


def _class(name: str, selectors: Sequence[Mapping[str, Any]]) -> str:
    first = selectors[0]
    folder = first["url_shape"].partition("*")[0]
    lines = [
        f"@handle_urls({json.dumps(first['host'] + folder)})",
        f"class {name}(WebPage):",
        f"    {_quoted(first['schema'] + ' on ' + first['host'] + first['url_shape'])}",
    ]
    fields: dict[str, list[Mapping[str, Any]]] = {}
    for one in selectors:
        fields.setdefault(one["field"], []).append(one)
    for path, many in fields.items():
        lines += ["", *_method(path, many)]
    return "\n".join(lines) + "\n"


def _method(path: str, selectors: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "    @field"
    yield f"    def {_name(path)}(self):"
    yield f"        return {'_all' if '*' in path else '_one'}("
    yield "            self,"
    for one in selectors:
        yield f"            {_place(one)!r},"
    yield "        )"


def _place(one: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: one[name] for name in ("label", "position", "of", "before", "after")}
    # A browser adds `tbody` to a table; the parser of web-poet does not.
    css = one["css"].replace(" > tbody > tr", " tr")
    return {"css": f"body > {css}"} | {name: value for name, value in given.items() if value not in (None, "")}


def _quoted(text: str) -> str:
    """A docstring in one line."""
    plain = "".join(char if char.isprintable() and char not in '"\\' else " " for char in text)
    return f'"""{plain.strip()}."""'


def _name(path: str) -> str:
    name = _NOT_NAME.sub("_", path.replace("/*", "")).strip("_").lower() or "value"
    return f"_{name}" if keyword.iskeyword(name) or name[0].isdigit() else name


def _class_name(one: Mapping[str, Any], number: int) -> str:
    words = _NOT_NAME.split(f"{one['host']} {one['url_shape']}".replace("_", " "))
    name = "".join(word.capitalize() for word in words if word.isascii())
    return f"{name if name[:1].isalpha() else f'Site{name}'}Page{number}"
