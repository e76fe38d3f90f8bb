"""`python -m tests.judge [--peers PYTHON] [PART ...]`: how well Curtsy reads, beside other libraries.

Exits with 1 if Curtsy falls below a floor in tests/golden/floors.toml. Without `--peers`, it judges Curtsy alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.judge import documents, main_content, manuals, records, shop_and_forum_pages, structured, values

PARTS = {
    "main-content": main_content.judge,
    "manuals": manuals.judge,
    "shops-and-forums": shop_and_forum_pages.judge,
    "structured": structured.judge,
    "documents": documents.judge,
    "records": records.judge,
    "values": values.judge,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judge", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: all of {', '.join(PARTS)}")
    parser.add_argument("--peers", type=Path, metavar="PYTHON", help="a Python that has the peers' libraries")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="also name the N pages with the lowest F1")
    parser.add_argument("--raise-floors", action="store_true", help="write floors that were beaten into floors.toml")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"unknown part {sorted(unknown)[0]!r}: choose from {', '.join(PARTS)}")
    fell = False
    for part in options.parts or PARTS:
        lines = PARTS[part](options.peers, options.worst, options.raise_floors)
        fell = fell or any(line.startswith("- FELL") for line in lines)
        print("\n".join(lines), end="\n\n", flush=True)
    return int(fell)


if __name__ == "__main__":
    sys.exit(main())
