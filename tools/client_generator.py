"""Writes the typed HTTP client, `src/curtsy/client/types.py` and `calls.py`, from docs/openapi.json.

    types.py     a TypedDict for every schema
    calls.py     a method for every endpoint, in a blocking class and in an asyncio class

The build runs this in an isolated environment, so it imports only the standard library (decision 41). A construct that
it does not support raises `UnsupportedSpec`: nothing is left out silently.
"""

from __future__ import annotations

import json
import keyword
import os
import re
from pathlib import Path
from textwrap import wrap
from typing import Any

Schema = dict[str, Any]
Operation = dict[str, Any]

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "openapi.json"
PACKAGE = ROOT / "src" / "curtsy" / "client"

_JSON = "application/json"
_NDJSON = "application/x-ndjson"
_PYTHON_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
#: the connection sends these headers, so methods have no parameter for them
_CONNECTION_HEADERS = ("X-Request-Id",)
#: media type of a response other than JSON -> (kind, Python type)
_MEDIA_TYPES = {
    "text/event-stream": ("events", "Event"),
    "application/octet-stream": ("bytes", "bytes"),
    "image/png": ("bytes", "bytes"),
    "text/plain": ("text", "str"),
    "text/markdown": ("text", "str"),
    "text/html": ("text", "str"),
}


class UnsupportedSpec(Exception):
    """The document contains a construct that this generator does not support."""


def sources(document: dict[str, Any]) -> dict[str, str]:
    """File name -> source text."""
    return {"types.py": _types(document["components"]["schemas"]), "calls.py": _calls(document)}


def write(document: Path = DOCUMENT, package: Path = PACKAGE) -> list[Path]:
    """Write the files that are missing or differ, so that time stamps change only with the content."""
    package.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, source in sources(json.loads(document.read_text("utf-8"))).items():
        path = package / name
        if not path.exists() or path.read_text("utf-8") != source:
            # Two installations may run at once: a reader never sees half a file.
            part = path.with_suffix(f".{os.getpid()}")
            part.write_text(source, "utf-8")
            part.replace(path)
        paths.append(path)
    return paths


# Types


def _types(schemas: dict[str, Schema]) -> str:
    parts = [_header("The API's schemas."), "from typing import Any, Literal, NotRequired, TypedDict"]
    for name, schema in schemas.items():
        parts += ["", "", *_class(_class_name(name), schema)]
    return "\n".join(parts) + "\n"


def _class(name: str, schema: Schema) -> list[str]:
    if schema.get("type") != "object" or "properties" not in schema:
        return [f"{name} = {_type(schema)}"]
    required = schema.get("required", ())
    fields: list[str] = []
    for field, part in schema["properties"].items():
        if not field.isidentifier() or keyword.iskeyword(field):
            raise UnsupportedSpec(f"{name}.{field} is not a valid Python field name")
        kind = _type(part)
        fields += [f"    #: {line}" for line in _wrapped(part.get("description", ""), 113)]
        fields.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}")
    about = " ".join(str(schema.get("description", "")).split())
    return [f"class {name}(TypedDict):", *([f'    """{about}"""', ""] if about else []), *(fields or ["    pass"])]


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return _class_name(_referenced(schema))
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
        values = schema.get("additionalProperties", True)
        return f"dict[str, {'Any' if values is True else _type(values)}]"
    if kind is None:
        return "Any"
    if kind not in _PYTHON_TYPES:
        raise UnsupportedSpec(f"a schema of type {kind!r}")
    return _PYTHON_TYPES[kind]


def _referenced(part: dict[str, Any]) -> str:
    return str(part["$ref"]).rpartition("/")[2]


def _class_name(name: str) -> str:
    """`Page_CrawlSummary_` -> `PageOfCrawlSummary`; other names stay."""
    generic = re.fullmatch(r"(\w+?)_(\w+)_", name)
    return f"{generic[1]}Of{generic[2]}" if generic else re.sub(r"\W|_", "", name)


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(" ".join(text.split()), width)


# Calls


def _calls(document: dict[str, Any]) -> str:
    paths = document["paths"]
    operations = [(path, method, one) for path, methods in paths.items() for method, one in methods.items()]
    schemas = document["components"]["schemas"]
    blocking, asynchronous = (
        "\n\n".join(_method(*one, schemas, blocking=blocking) for one in operations) for blocking in (True, False)
    )
    return (
        f"{_header('A method for every endpoint.')}\nfrom collections.abc import AsyncIterator, Iterator\n"
        "from typing import Any, Literal, cast\n\nfrom curtsy.client import types\n"
        "from curtsy.client.transport import Asked, Event\n\n\n"
        f'class Calls(Asked):\n    """Blocking calls."""\n\n{blocking}\n\n\n'
        f'class AsyncCalls(Asked):\n    """The same calls for asyncio."""\n\n{asynchronous}\n'
    )


def _header(about: str) -> str:
    return (
        f'"""{about} Generated from docs/openapi.json by tools/client_generator.py: do not edit."""\n\n'
        "from __future__ import annotations\n"
    )


def _method(path: str, method: str, operation: Operation, schemas: dict[str, Schema], *, blocking: bool) -> str:
    arguments = _Arguments(path, operation, schemas)
    kind, result, statuses = _response(operation)
    streams = kind in ("events", "blocks")
    returns = f"{'' if blocking else 'Async'}Iterator[{result}]" if streams else result
    define = "    def" if blocking or streams else "    async def"
    lines = [f"{define} {operation['operationId']}("]
    lines += [f"        {parameter}," for parameter in ["self", *arguments.parameters]]
    lines.append(f"    ) -> {returns}:")
    about = _wrapped(operation["description"], 106)
    lines += [f'        """{about[0]}', *(f"        {line}" for line in about[1:]), '        """'] if about else []
    call = f"self._{kind}" if streams else "self._call"
    if not blocking:
        call = f"{call}_async" if streams else f"await {call}_async"
    passed = [f'"{method.upper()}"', arguments.path, *arguments.passed]
    passed += [f'kind="{kind}"'] if kind != "json" and not streams else []
    passed += [f"accepted=({', '.join(map(str, statuses))},)"] if statuses != [200] and not streams else []
    made = f"{call}({', '.join(passed)})"
    lines.append(f"        return {made}" if streams else f"        return cast({_cast(result)}, {made})")
    return "\n".join(lines)


def _cast(result: str) -> str:
    return "None" if result == "None" else f'"{result}"'


class _Arguments:
    """The parameters of a method, and how its body passes them on."""

    def __init__(self, path: str, operation: Operation, schemas: dict[str, Schema]) -> None:
        self.parameters: list[str] = []
        names: list[str] = []
        places: dict[str, list[str]] = {"query": [], "header": []}
        keywords: list[str] = []
        for part in operation["parameters"]:
            if "$ref" in part and _referenced(part) in _CONNECTION_HEADERS:
                continue
            name = part["name"].lower().replace("-", "_")
            names.append(name)
            if part["in"] == "path":
                self.parameters.append(f"{name}: str")
                continue
            if part["in"] not in places:
                raise UnsupportedSpec(f"{path}: a parameter in {part['in']}")
            places[part["in"]].append(f'"{part["name"]}": {name}')
            keywords.append(_parameter(name, part["schema"], part["required"]))
        body = _json_body(path, operation, schemas)
        fields = body.get("properties", {})
        names += fields
        keywords += [_parameter(name, schema, name in body.get("required", ())) for name, schema in fields.items()]
        if len(set(names)) < len(names):
            raise UnsupportedSpec(f"{path}: two parameters have the same name")
        if keywords:
            self.parameters += ["*", *sorted(keywords, key=lambda parameter: " = " in parameter)]
        self.path = f'"{path}"' if "{" not in path else 'f"' + re.sub(r"{(\w+)}", r"{self._word(\1)}", path) + '"'
        values = {
            "query": places["query"],
            "body": [f'"{field}": {field}' for field in fields],
            "headers": places["header"],
        }
        self.passed = [f"{name}={{{', '.join(items)}}}" for name, items in values.items() if items]


def _json_body(path: str, operation: Operation, schemas: dict[str, Schema]) -> Schema:
    """The schema of the JSON body; empty without one. NDJSON bodies are sent by `Server.submit_many`."""
    content = operation.get("requestBody", {}).get("content", {})
    if unknown := set(content) - {_JSON, _NDJSON}:
        raise UnsupportedSpec(f"{path}: a body of type {unknown}")
    return schemas[_referenced(content[_JSON]["schema"])] if _JSON in content else {}


def _parameter(name: str, schema: Schema, required: bool) -> str:
    kind = re.sub(r"\b([A-Z]\w+)\b(?!\[)", _qualified, _type(schema))
    if required:
        return f"{name}: {kind}"
    return f"{name}: {kind if kind.endswith('None') else kind + ' | None'} = None"


def _qualified(found: re.Match[str]) -> str:
    return found[0] if found[0] in ("Any", "None", "Literal") else f"types.{found[0]}"


def _response(operation: Operation) -> tuple[str, str, list[int]]:
    """(kind, Python type, statuses) of the successful responses. Problem documents are raised as errors."""
    found: dict[tuple[str, str], list[int]] = {}
    for status, response in operation["responses"].items():
        if "$ref" not in response:
            kind, result = _content_type(response.get("content", {}))
            kind = "blocks" if response.get("x-streamed") else kind
            found.setdefault((kind, result), []).append(int(status))
    if len(found) != 1:
        raise UnsupportedSpec(f"{operation['operationId']}: responses of several types")
    (kind, result), statuses = found.popitem()
    return kind, result, statuses


def _content_type(content: dict[str, Any]) -> tuple[str, str]:
    if not content:
        return "nothing", "None"
    ((media, part),) = content.items()
    if media == _JSON:
        name = _type(part["schema"])
        return "json", name if name == "Any" else f"types.{name}"
    media = media.partition(";")[0]
    if media not in _MEDIA_TYPES:
        raise UnsupportedSpec(f"a response of type {media}")
    return _MEDIA_TYPES[media]


if __name__ == "__main__":
    write()
