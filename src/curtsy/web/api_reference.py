"""The page /docs: the OpenAPI document for people. One file, no scripts, no external resources."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from flask import render_template
from markupsafe import Markup, escape

_CSS = (Path(__file__).parent / "static" / "api_reference.css").read_text("utf-8")
CSP = (
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_CSS.encode()).digest()).decode()}'"
)


def page(document: dict[str, Any]) -> str:
    def resolved(part: dict[str, Any]) -> Any:
        """A parameter or response, which may be a reference to a component."""
        if "$ref" not in part:
            return part
        _, _, kind, name = part["$ref"].split("/")
        return document["components"][kind][name]

    tags: dict[str, list[tuple[str, str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tags.setdefault(operation["tags"][0], []).append((path, method.upper(), operation))
    return render_template(
        "api_reference.html", css=Markup(_CSS), doc=document, tags=tags, resolved=resolved, inline=_inline
    )


def _inline(text: str) -> Markup:
    """Escapes a text and formats `code`."""
    parts = str(escape(text)).split("`")
    return Markup("".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts)))
