"""Progress of a crawl in Python: a table in a notebook, a line on a terminal.

It needs no package: a notebook has IPython already, and elsewhere it is not imported.
"""

from __future__ import annotations

import sys
import time
from html import escape
from typing import TYPE_CHECKING, Any, TextIO

from curtsy.core.model import Counts

if TYPE_CHECKING:
    from curtsy.api.crawling import Crawling

#: minimum seconds between two updates of a notebook, and between two lines of a log
_DRAW_S = 0.5
_LOG_S = 5.0


def shown_line(counts: Counts) -> str:
    """`12 pages, 3 pending, 1 skipped, 0 failed`, and what the crawl waits for."""
    parts = [f"{counts.pages:,} pages", f"{counts.pending:,} pending"]
    failed = sum(counts.failed.values()) + sum(counts.failed_stages.values())
    parts += [f"{sum(counts.skipped.values()):,} skipped", f"{failed:,} failed"]
    return ", ".join(parts) + (f"; {counts.waiting}" if counts.waiting else "")


def shown_html(id: str, counts: Counts, ended: bool) -> str:
    """A small table. It contains no text of crawled pages."""
    rows = [("pages", f"{counts.pages:,}"), ("done", f"{counts.done:,}"), ("pending", f"{counts.pending:,}")]
    rows += [("skipped", _reasons(counts.skipped)), ("dead letters", _reasons(counts.failed | counts.failed_stages))]
    if counts.waiting and not ended:
        rows.append(("waits for", counts.waiting))
    known = counts.done + sum(counts.skipped.values()) + sum(counts.failed.values())
    cells = "".join(f"<tr><th style='text-align:left'>{escape(n)}</th><td>{escape(v)}</td></tr>" for n, v in rows)
    bar = f"<progress value='{known}' max='{max(1, known + counts.pending)}'></progress>"
    state = "crawling" if not ended else "stopped" if counts.pending else "ended"
    return f"<table><caption>{escape(id)}: {state} {bar}</caption>{cells}</table>"


def _reasons(found: dict[str, int]) -> str:
    return ", ".join(f"{reason} {n:,}" for reason, n in sorted(found.items())) or "0"


class Display:
    """Redraws the progress while the crawl runs. Called from the crawl's thread."""

    def __init__(self, crawling: Crawling, err: TextIO | None = None) -> None:
        self._crawling = crawling
        self._err = err or sys.stderr
        self._handle: Any = None
        self._drawn_at = float("-inf")
        self._open = False

    def update(self, counts: Counts) -> None:
        every_s = _DRAW_S if self._notebook() or self._err.isatty() else _LOG_S
        if time.monotonic() - self._drawn_at >= every_s:
            self._drawn_at = time.monotonic()
            self._draw(counts)

    def close(self, counts: Counts) -> None:
        """Draw the final state."""
        self._draw(counts)
        if self._open:
            self._err.write("\n")
            self._err.flush()
            self._open = False

    def _draw(self, counts: Counts) -> None:
        notebook = self._notebook()
        if notebook is not None:
            if self._handle is None:
                self._handle = notebook.display(self._crawling, display_id=True)
            else:
                self._handle.update(self._crawling)
        elif self._err.isatty():
            self._err.write(f"\r\x1b[K{shown_line(counts)}")
            self._err.flush()
            self._open = True
        else:
            print(shown_line(counts), file=self._err)

    @staticmethod
    def _notebook() -> Any:
        """IPython's display module in a notebook; None elsewhere."""
        ipython = sys.modules.get("IPython")
        shell = None if ipython is None else ipython.get_ipython()
        return None if shell is None or not hasattr(shell, "kernel") else sys.modules.get("IPython.display")
