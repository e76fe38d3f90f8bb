"""The page /docs: the same document for people. One file, no scripts, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any

_CSS = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h1,h2{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid #ccc}
section{margin:1.5rem 0;padding:.5rem 1rem;border:1px solid #ddd;border-radius:.4rem}
h3{margin:.4rem 0;font:600 1rem/1.4 ui-monospace,monospace}h3 b{display:inline-block;min-width:4.5rem;color:#0a5}
code,pre{font:.875rem/1.4 ui-monospace,monospace}pre{background:#f5f5f5;padding:.6rem;overflow:auto}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}
th{font-weight:600}summary{cursor:pointer}a{color:#06c}.scope{float:right;color:#666}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#222}section{border-color:#444}
a{color:#7bf}h3 b{color:#5d9}.scope{color:#aaa}}
"""
CSP = (
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_CSS.encode()).digest()).decode()}'"
)


def page(document: dict[str, Any]) -> str:
    tags: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tag = operation["tags"][0] if operation["tags"] else "more"
            tags.setdefault(tag, []).append(_operation(path, method.upper(), operation))
    info, schemas = document["info"], document["components"]["schemas"]
    parts = [f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>", _text(info["description"])]
    parts.append(_text(document["components"]["securitySchemes"]["key"]["description"]))
    parts.append('<p>For programs: <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>')
    for tag, sections in tags.items():
        parts += [f"<h2>{escape(tag)}</h2>", *sections]
    parts.append("<h2>What the bodies hold</h2>")
    parts += [_schema(name, schema) for name, schema in schemas.items()]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(info['title'])}</title><style>{_CSS}</style>{''.join(parts)}</html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    scope = "".join(s for need in operation["security"] for s in need.get("key", ()))
    parts = [f'<section id="{escape(operation["operationId"])}"><h3><span class="scope">{escape(scope)}</span>']
    parts.append(f"<b>{method}</b>{escape(path)}</h3>{_text(operation['description'])}")
    if operation["parameters"]:
        rows = [
            f"<tr><td><code>{escape(p['name'])}</code><td>{escape(p['in'])}<td>{_kind(p['schema'])}"
            f"<td>{_inline(p.get('description', ''))}"
            for p in operation["parameters"]
        ]
        parts.append(f"<table><tr><th>parameter<th>in<th>kind<th>{''.join(rows)}</table>")
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        said = body["schema"].get("description", "")
        parts.append(f"<p>Body <code>{escape(kind)}</code>: {_kind(body['schema'])} {_inline(said)}</p>")
    answers = [_answer(status, answer) for status, answer in operation["responses"].items()]
    parts.append(f"<details><summary>Answers</summary><table>{''.join(answers)}</table></details></section>")
    return "".join(parts)


def _answer(status: str, answer: dict[str, Any]) -> str:
    kinds = ", ".join(f"{escape(kind)} {_kind(body['schema'])}" for kind, body in answer.get("content", {}).items())
    return f"<tr><td><code>{status}</code><td>{escape(answer['description'])}<td>{kinds}"


def _schema(name: str, schema: dict[str, Any]) -> str:
    rows = []
    for field, part in schema.get("properties", {}).items():
        must = " <b>*</b>" if field in schema.get("required", ()) else ""
        rows.append(
            f"<tr><td><code>{escape(field)}</code>{must}<td>{_kind(part)}<td>{_inline(part.get('description', ''))}"
        )
    return (
        f'<section id="schema-{escape(name)}"><h3>{escape(name)}</h3>{_text(schema.get("description", ""))}'
        f"<table>{''.join(rows)}</table></section>"
    )


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(json.dumps(value))}</code>" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return escape(str(schema.get("format") or schema.get("type") or "anything"))


def _text(text: str) -> str:
    return "".join(f"<p>{_inline(part)}</p>" for part in text.split("\n\n") if part.strip())


def _inline(text: str) -> str:
    """`code` is set as such."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))
