"""Run in the judge's own environment: `python peers_main_content.py FOLDER` prints what other libraries extract.

One JSON object: library and version -> page -> [text, CPU seconds]. It imports nothing of this project.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import lxml.html
import readability
import trafilatura
from resiliparse.extract.html2text import extract_plain_text


def with_trafilatura(html: str) -> str:
    return trafilatura.extract(html) or ""


def with_readability(html: str) -> str:
    document = readability.Document(html)
    body = lxml.html.fromstring(document.summary())
    for block in body.iter("p", "div", "li", "tr", "br", "pre", "blockquote", "h1", "h2", "h3", "h4", "td", "th"):
        block.tail = "\n" + (block.tail or "")
    return f"{document.title()}\n{body.text_content()}"


def with_resiliparse(html: str) -> str:
    return extract_plain_text(html, main_content=True, alt_texts=False)


PEERS: dict[str, Callable[[str], str]] = {
    "trafilatura": with_trafilatura,
    "readability-lxml": with_readability,
    "resiliparse": with_resiliparse,
}


def timed(extract: Callable[[str], str], html: str) -> tuple[str, float]:
    extract(html)  # what is made on first use does not count
    started = time.process_time()
    text = extract(html)
    return text, time.process_time() - started


def main() -> None:
    pages = {path.stem: path.read_text("utf-8") for path in sorted(Path(sys.argv[1]).glob("*.html"))}
    found = {
        f"{name} {version(name)}": {page: timed(extract, html) for page, html in pages.items()}
        for name, extract in PEERS.items()
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
