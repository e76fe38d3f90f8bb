"""Run in the judge's own environment: `python peers_structured.py FOLDER URL` prints what other libraries read.

One JSON object: library and version -> page -> [data, CPU seconds]. It imports nothing of this project.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import extruct
import mf2py


def with_extruct(html: str, url: str) -> Any:
    return extruct.extract(html, base_url=url, errors="log")


def with_mf2py(html: str, url: str) -> Any:
    return mf2py.parse(doc=html, url=url)


PEERS: dict[str, Callable[[str, str], Any]] = {"extruct": with_extruct, "mf2py": with_mf2py}


def timed(read: Callable[[str, str], Any], html: str, url: str) -> tuple[Any, float]:
    read(html, url)  # what is made on first use does not count
    started = time.process_time()
    data = read(html, url)
    return data, time.process_time() - started


def main() -> None:
    logging.disable(logging.CRITICAL)
    folder, url = sys.argv[1:]
    pages = {path.stem: path.read_text("utf-8") for path in sorted(Path(folder).glob("*.html"))}
    found = {
        f"{name} {version(name)}": {page: timed(read, html, url) for page, html in pages.items()}
        for name, read in PEERS.items()
    }
    json.dump(found, sys.stdout, default=str)


if __name__ == "__main__":
    main()
