"""Output of commands: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from curtsy.cli.table_layout import fitted
from curtsy.core.model import MOST_RENDER
from curtsy.core.observe import announce

#: C0 and C1 without tab and newline, and what changes the direction of text
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def document(fields: Mapping[str, Any]) -> None:
    """The one JSON document of --json."""
    print(json.dumps(fields, ensure_ascii=False, indent=2, default=str))


def say(text: str = "") -> None:
    print(text)


def note(text: str) -> None:
    announce(text)


def table(columns: Sequence[str], rows: Iterable[Iterable[Any]], wide: bool) -> None:
    """A table that fits the terminal, or with `wide` all of it; not on a terminal, tab-separated lines."""
    if not sys.stdout.isatty():
        print("\t".join(columns))
        for row in rows:
            print("\t".join("" if cell is None else str(cell) for cell in row))
        return
    # 0.05 s of start-up that only a terminal needs
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    # Without a height, a terminal without commands (TERM=dumb) has 80 columns whatever the width.
    console = Console(markup=False, highlight=False, width=10_000 if wide else None, height=100 if wide else None)
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    names, fitting = (list(columns), cells) if wide else fitted(columns, cells, console.width)
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        shown.add_column(name, no_wrap=True)
    for row in fitting:
        shown.add_row(*row)
    console.print(shown)
    hidden = [at for at, name in enumerate(columns) if name not in names and any(row[at] for row in cells)]
    if hidden:
        note("Some columns are left out; --wide shows all.")


def one_line(text: str | None, most: int = 120) -> str | None:
    """Foreign text for a cell of a table: without control characters, and cut."""
    plain = " ".join("".join(sign if sign.isprintable() else " " for sign in text or "").split())
    return (plain if len(plain) <= most else plain[: most - 3] + "...") or None


def inert(text: str) -> str:
    """Foreign text of several lines without control characters: none of it moves the cursor of a terminal."""
    return _CONTROLS.sub("\ufffd", text)


def number(n: int, what: str) -> str:
    """`1 page`, `2,000 pages`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def reasons(counts: Mapping[str, int]) -> str:
    """`robots 12, too_large 1`, most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason or 'other'} {n:,}" for reason, n in ordered) or "none"


def pending(n: int, render: int) -> str:
    """`120`, or `120, 80 of them wait for a browser`."""
    more = " or more" if render >= MOST_RENDER else ""
    return f"{n:,}" + (f", {render:,}{more} of them wait for a browser" if render else "")


#: the stable fields of `crawl --json` and `status --json`, from the counts of a status document and from itself
_COUNTS = ("pages", "done", "skipped", "failed", "failed_stages", "pending", "pending_render")
_OTHERS = ("name", "tags", "owner", "schedule", "lane", "created", "ended", "elapsed_s", "pages_per_s", "urls_per_s",
           "estimated_end", "llm")  # fmt: skip


def ledger(status: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a crawl for --json. A summary has no counts but its pages."""
    counts = status.get("counts", status)
    found = {name: counts[name] for name in _COUNTS if name in counts}
    others = {name: status[name] for name in _OTHERS if name in status}
    return {"id": status["id"], "state": status["state"], **found, **others}
