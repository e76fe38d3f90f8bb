"""The typed client's source, made from the OpenAPI document: `make client` writes it, a test compares.

    client/types.py     a TypedDict for every schema
    client/calls.py     a method for every endpoint, once to wait for and once to await

What the document may say and this does not know is an error here, so that nothing of it is left out silently.
"""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from textwrap import wrap
from typing import Any

from curtsy.web.openapi import document
from curtsy.web.routing import JSON, NDJSON

Schema = dict[str, Any]

_HEAD = """{about} Made from the OpenAPI document by `make client`: do not edit."""
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
#: of every request; the connection sends it
_OF_THE_CONNECTION = ("X-Request-Id",)
#: what a body that is no JSON becomes: (kind, type)
_MEDIA = {
    "text/event-stream": ("events", "Event"),
    "application/octet-stream": ("bytes", "bytes"),
    "text/plain": ("text", "str"),
    "text/html": ("text", "str"),
}


class UnknownPart(Exception):
    """The document says something that this module cannot put into Python yet."""


def sources() -> dict[str, str]:
    """File name -> source, of the package `curtsy.client`."""
    from curtsy.web import api  # noqa: F401 - declares the endpoints

    found = document()
    return {"types.py": _types(found["components"]["schemas"]), "calls.py": _calls(found["paths"])}


# Types


def _types(schemas: dict[str, Schema]) -> str:
    parts = [
        _head("What goes in and out over HTTP."),
        "from typing import Any, Literal, NotRequired, TypedDict",
    ]
    for name, schema in schemas.items():
        parts += ["", "", *_class(_name(name), schema)]
    return "\n".join(parts) + "\n"


def _class(name: str, schema: Schema) -> list[str]:
    if schema.get("type") != "object" or "properties" not in schema:
        return [f"{name} = {_type(schema)}"]
    required = schema.get("required", ())
    fields: list[str] = []
    for field, part in schema["properties"].items():
        if not field.isidentifier() or keyword.iskeyword(field):
            raise UnknownPart(f"{name}.{field} is no name of a field")
        kind = _type(part)
        fields += [f"    #: {line}" for line in _said(part.get("description", ""), 113)]
        fields.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}")
    about = " ".join(str(schema.get("description", "")).split())
    return [f"class {name}(TypedDict):", *([f'    """{about}"""', ""] if about else []), *(fields or ["    pass"])]


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return f"Literal[{_quoted(schema['const'])}]"
    if "enum" in schema:
        return f"Literal[{', '.join(map(_quoted, schema['enum']))}]"
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(choice) for choice in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        return f"list[{_type(schema.get('items', {}))}]"
    if kind == "object":
        of = schema.get("additionalProperties", True)
        return f"dict[str, {'Any' if of is True else _type(of)}]"
    if kind is None:
        return "Any"
    if kind not in _PLAIN:
        raise UnknownPart(f"a schema of the type {kind!r}")
    return _PLAIN[kind]


def _name(name: str) -> str:
    """`Page_CrawlSummary_` -> `PageOfCrawlSummary`; other names stay."""
    found = re.fullmatch(r"(\w+?)_(\w+)_", name)
    return f"{found[1]}Of{found[2]}" if found else re.sub(r"\W|_", "", name)


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _said(text: str, width: int) -> list[str]:
    return wrap(" ".join(text.split()), width)


# Calls


def _calls(paths: dict[str, dict[str, Any]]) -> str:
    operations = [(path, method, one) for path, methods in paths.items() for method, one in methods.items()]
    waits, awaits = ("\n\n".join(_method(*one, wait=wait) for one in operations) for wait in (True, False))
    return (
        f"{_head('A method for every endpoint.')}\nfrom collections.abc import AsyncIterator, Iterator\n"
        "from typing import Any, Literal, cast\n\nfrom curtsy.client import types\n"
        "from curtsy.client.transport import Asked, Event\n\n\n"
        f'class Calls(Asked):\n    """Each returns when the answer is there."""\n\n{waits}\n\n\n'
        f'class AsyncCalls(Asked):\n    """Each is to be awaited."""\n\n{awaits}\n'
    )


def _head(about: str) -> str:
    return f'"""{_HEAD.format(about=about)}"""\n\nfrom __future__ import annotations\n'


def _method(path: str, method: str, one: dict[str, Any], *, wait: bool) -> str:
    given = _Given(path, one)
    kind, answer, statuses = _answer(one)
    events = kind == "events"
    returns = f"{'' if wait else 'Async'}Iterator[{answer}]" if events else answer
    begin = "    def" if wait or events else "    async def"
    lines = [f"{begin} {one['operationId']}({', '.join(['self', *given.parameters])}) -> {returns}:"]
    about = _said(one["description"], 106)
    lines += [f'        """{about[0]}', *(f"        {line}" for line in about[1:]), '        """'] if about else []
    call = "self._events" if events else "self._call"
    if not wait:
        call = "self._events_async" if events else "await self._call_async"
    words = [f'"{method.upper()}"', given.path, *given.words]
    words += [f'kind="{kind}"'] if kind not in ("json", "events") else []
    words += [f"accepted=({', '.join(map(str, statuses))},)"] if statuses != [200] and not events else []
    made = f"{call}({', '.join(words)})"
    lines.append(f"        return {made}" if events else f"        return cast({_cast(answer)}, {made})")
    return "\n".join(lines)


def _cast(answer: str) -> str:
    return "None" if answer == "None" else f'"{answer}"'


class _Given:
    """The parameters of a method, and how they go into its call."""

    def __init__(self, path: str, one: dict[str, Any]) -> None:
        self.parameters: list[str] = []
        self.words: list[str] = []
        names: list[str] = []
        places: dict[str, list[str]] = {"query": [], "header": []}
        optional: list[str] = []
        for part in one["parameters"]:
            if part["name"] in _OF_THE_CONNECTION:
                continue
            name = part["name"].lower().replace("-", "_")
            names.append(name)
            if part["in"] == "path":
                self.parameters.append(f"{name}: str")
                continue
            if part["in"] not in places:
                raise UnknownPart(f"{path}: a parameter in {part['in']}")
            places[part["in"]].append(f'"{part["name"]}": {name}')
            optional.append(self._parameter(name, part["schema"], part["required"]))
        body, fields = self._body(path, one)
        names += fields
        if len(set(names)) < len(names):
            raise UnknownPart(f"{path}: two parameters have the same name")
        if optional or body:
            self.parameters += ["*", *sorted([*optional, *body], key=lambda parameter: " = " in parameter)]
        self.path = '"' + path + '"' if "{" not in path else 'f"' + re.sub(r"{(\w+)}", r"{self._word(\1)}", path) + '"'
        self.words += [f"query={{{', '.join(places['query'])}}}"] if places["query"] else []
        if fields:
            self.words.append("body={" + ", ".join(f'"{field}": {field}' for field in fields) + "}")
        self.words += [f"headers={{{', '.join(places['header'])}}}"] if places["header"] else []

    def _body(self, path: str, one: dict[str, Any]) -> tuple[list[str], list[str]]:
        content = one.get("requestBody", {}).get("content", {})
        if unknown := set(content) - {JSON, NDJSON}:
            raise UnknownPart(f"{path}: a body of the type {unknown}")
        if JSON not in content:
            return [], []
        schema = document()["components"]["schemas"][content[JSON]["schema"]["$ref"].rpartition("/")[2]]
        required = schema.get("required", ())
        fields = list(schema["properties"])
        return [self._parameter(name, schema["properties"][name], name in required) for name in fields], fields

    @staticmethod
    def _parameter(name: str, schema: Schema, required: bool) -> str:
        kind = re.sub(r"\b([A-Z]\w+)\b(?!\[)", _qualified, _type(schema))
        if required:
            return f"{name}: {kind}"
        return f"{name}: {kind if kind.endswith('None') else kind + ' | None'} = None"


def _qualified(found: re.Match[str]) -> str:
    return found[0] if found[0] in ("Any", "None", "Literal") else f"types.{found[0]}"


def _answer(one: dict[str, Any]) -> tuple[str, str, list[int]]:
    """(kind, type, statuses) of what is no problem."""
    found: dict[tuple[str, str], list[int]] = {}
    for status, answer in one["responses"].items():
        content = answer.get("content", {})
        if "application/problem+json" in content:
            continue
        found.setdefault(_of_media(content), []).append(int(status))
    if len(found) != 1:
        raise UnknownPart(f"{one['operationId']}: answers of several types")
    (kind, answer), statuses = found.popitem()
    return kind, answer, statuses


def _of_media(content: dict[str, Any]) -> tuple[str, str]:
    if not content:
        return "nothing", "None"
    ((media, part),) = content.items()
    if media == JSON:
        found = _type(part["schema"])
        return "json", found if found == "Any" else f"types.{found}"
    media = media.partition(";")[0]
    if media not in _MEDIA:
        raise UnknownPart(f"an answer of the type {media}")
    return _MEDIA[media]


def write(folder: Path) -> None:
    for name, source in sources().items():
        (folder / name).write_text(source, "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
