"""Run in the judge's own environment: reads [[set, name, url, html], ...] and prints what trafilatura finds.

One JSON object: library and version -> [[set, name, {"author": [...], "date": [...]}], ...]. It imports nothing of this
project.
"""

from __future__ import annotations

import json
import logging
import sys
from importlib.metadata import version

from trafilatura.metadata import extract_metadata


def values(html: str, url: str) -> dict[str, list[str]]:
    found = extract_metadata(html, default_url=url)
    authors = [one.strip() for one in (found.author or "").split(";") if one.strip()] if found else []
    return {"author": authors, "date": [found.date] if found and found.date else []}


def main() -> None:
    logging.disable(logging.CRITICAL)
    rows = [[of, name, values(html, url)] for of, name, url, html in json.load(sys.stdin)]
    json.dump({f"trafilatura {version('trafilatura')}": rows}, sys.stdout)


if __name__ == "__main__":
    main()
