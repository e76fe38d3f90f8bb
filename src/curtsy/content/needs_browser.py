"""Decide whether a page needs a browser, from its plain HTML: text, scripts, empty root elements, `noscript` hints.

Also decides when earlier pages of a host justify a visit without a plain request. Pure. A visit costs a hundred times
as much as a plain page and sends its host more requests, so in doubt the plain page is kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curtsy.content.document import Document

#: a page with at least this number of words needs no browser
ENOUGH_WORDS = 60
#: a page with fewer words has no content
FEW_WORDS = 10
#: a page with at least this number of links is an index and needs no browser
ENOUGH_LINKS = 3
#: a root element with less text than this is empty: room for "Loading ..."
_EMPTY_CHARS = 24
_ROOTS = (
    "#root, #app, #__next, #__nuxt, #___gatsby, #q-app, #main-app, #react-root, #app-root, #svelte, "
    "app-root, my-app, [ng-app], [data-reactroot], [data-ng-app], [v-cloak]"
)
#: types of scripts that a browser runs; data and templates are excluded
_CODE = frozenset(("", "module", "text/javascript", "application/javascript", "text/ecmascript", "text/babel"))
_HINT = re.compile(r"java\s*script|enable\s+(?:js|scripts)|browser", re.IGNORECASE)

#: the next pages of a host go to a browser directly after this number of pages needed one
SURE = 8
#: ... and if they are this many times the number of pages that needed none
RATIO = 8
#: one page of this number is still fetched without a browser: the host may have changed
PROBES = 10


def has_scripts(body: bytes) -> bool:
    """Whether the page may have scripts: one without needs no browser."""
    return b"<script" in body or b"<SCRIPT" in body


def needs_browser(document: Document, body: bytes) -> str | None:
    """Why the page has no useful content without a browser; None: it has some, or a browser would not find any."""
    if not has_scripts(body):
        return None
    root = document.tree.body
    if root is None or document.leads_on:
        return None
    if not any((node.attributes.get("type") or "").strip().lower() in _CODE for node in document.tree.css("script")):
        return None
    hint = " ".join(node.text(separator=" ") for node in root.css("noscript"))
    words = len(document.text().split()) - len(hint.split())
    if words >= ENOUGH_WORDS:
        return None
    roots = [len(" ".join(node.text(separator=" ").split())) for node in root.css(_ROOTS)]
    if any(chars <= _EMPTY_CHARS for chars in roots):
        return "empty_root"
    if _HINT.search(hint):
        return "noscript"
    # A root element with something in it was filled by the server.
    if words < FEW_WORDS and not roots and len(root.css("a[href]")) < ENOUGH_LINKS:
        return "no_text"
    return None


def goes_directly(needed: int, plain: int) -> bool:
    """Enough pages of a host needed a browser, and hardly one did not."""
    return needed >= SURE and needed >= plain * RATIO


def is_probe(fp: bytes) -> bool:
    """Whether this URL, by its fingerprint, is fetched plainly even if its host usually needs a browser."""
    return fp[0] % PROBES == 0
