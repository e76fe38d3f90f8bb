"""What commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from curtsy.core.model import MOST_RENDER, Counts, Crawl


def document(fields: Mapping[str, Any]) -> None:
    """The one JSON document of --json."""
    print(json.dumps(fields, ensure_ascii=False, indent=2, default=str))


def say(text: str = "") -> None:
    print(text)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """A table on a terminal; tab-separated lines where something else reads them."""
    if not sys.stdout.isatty():
        print("\t".join(columns))
        for row in rows:
            print("\t".join("" if cell is None else str(cell) for cell in row))
        return
    # 0.05 s of start-up that only a terminal needs
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    shown = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        shown.add_row(*("" if cell is None else str(cell) for cell in row))
    Console(markup=False, highlight=False).print(shown)


def one_line(text: str | None, most: int = 120) -> str | None:
    """Somebody else's words for a cell of a table: nothing that a terminal obeys, and not too many."""
    plain = " ".join("".join(sign if sign.isprintable() else " " for sign in text or "").split())
    return (plain if len(plain) <= most else plain[: most - 3] + "...") or None


def when(at_ms: int | None) -> str | None:
    """RFC 3339 in UTC, to the second."""
    return None if not at_ms else datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def reasons(counts: Mapping[str, int]) -> str:
    """`robots 12, too_large 1`, most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason or 'other'} {n:,}" for reason, n in ordered) or "none"


def pending(n: int, render: int) -> str:
    """`120`, or `120, 80 of them wait for a browser`."""
    more = " or more" if render >= MOST_RENDER else ""
    return f"{n:,}" + (f", {render:,}{more} of them wait for a browser" if render else "")


def ledger(crawl: Crawl, counts: Counts, elapsed_s: float) -> dict[str, Any]:
    """The stable fields of `crawl --json` and `status --json`."""
    return {
        "id": crawl.id,
        "state": crawl.state.value,
        "pages": counts.pages,
        "done": counts.done,
        "skipped": dict(counts.skipped),
        "failed": dict(counts.failed),
        "failed_stages": dict(counts.failed_stages),
        "pending": counts.pending,
        "pending_render": counts.pending_render,
        "elapsed_s": round(elapsed_s, 3),
    }


def elapsed_s(crawl: Crawl, now_ms: int) -> float:
    """From start to end, or until now."""
    begun = crawl.started_ms or crawl.created_ms
    return max(0, (crawl.ended_ms or now_ms) - begun) / 1000
