"""Acts as a newcomer: a project of many organizations, its table, the bundle in a browser, and the job again.

Some organizations are dead (nothing listens), some have a certificate that nobody trusts, some are slow. Each command
runs on a terminal of 80 columns; what it prints is kept, with ids, times and places masked.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from curtsy.tinyweb import TinyWeb
from tests.newcomer.terminal import Run
from tests.support.certificates import Authority
from tests.support.chromium import ARGUMENTS, find

#: port 9 (discard): nothing listens there
CLOSED = "127.0.0.1:9"
#: standard error of a crawl: progress, which depends on time
_PROGRESS = re.compile(r"^([\d,]+ pages?, .*|records .* to do)$")
_MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"(?<=--crawl )[0-9a-f]{8}-[0-9a-f]{4}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"(?<=in )[\d,.]+ s, [\d,.]+/s"), "N s, N/s"),
    (re.compile(r"[\d,.]+ (ms|s)\b"), r"N \1"),
    (re.compile(r"^( +)\d+(?= +organization)", re.MULTILINE), r"\1N"),
)
#: commands whose lines have no order of their own
_SORTED = ("failures", "review")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    organizations: int
    dead: int
    untrusted: int
    slow: int
    pages: int = 30

    @property
    def sites(self) -> list[str]:
        living = [f"http://org-{n:04}.tinyweb.test/" for n in range(self.organizations - self.dead - self.untrusted)]
        dead = [f"http://dead-{n}.tinyweb.test/" for n in range(self.dead)]
        return living + dead + [f"https://untrusted-{n}.tinyweb.test/" for n in range(self.untrusted)]


#: what the newcomer types after the first crawl: name of the golden file -> command
AFTERWARDS = {
    "status": "status",
    "failures": "failures list",
    "review": "review list",
    "explain-dead": "explain http://dead-0.tinyweb.test/",
    "explain-certificate": "explain https://untrusted-0.tinyweb.test/",
    "explain-robots": "explain http://org-0000.tinyweb.test/internal/drafts",
    "audit": "audit",
    "export": "export last --records --out orgs.xlsx",
    "bundle": "bundle last --out handover",
}


@dataclass(frozen=True, slots=True)
class Ran:
    command: str
    code: int
    out: str
    err: str

    @property
    def wide(self) -> list[str]:
        """Lines over 80 columns. Sentences, and lines of changed text, are wrapped by the terminal."""
        if self.command.startswith("explain"):
            return []
        return [line for line in self.out.splitlines() if len(line) > 80 and not line.startswith(("  - ", "  + "))]

    @property
    def golden(self) -> str:
        """What it printed, masked."""
        said = [line for line in self.err.splitlines() if not _PROGRESS.match(line)]
        lines = self.out.splitlines()
        if self.command.split()[0] in _SORTED:
            lines[3:] = sorted(lines[3:])  # after an empty line, the head and a rule
        if self.command.startswith("changes"):
            lines = lines[: lines.index("")]  # pages and values are in the order of their commits
        text = "\n".join([f"$ curtsy {self.command}", *lines, *said, f"exit code {self.code}"]) + "\n"
        for pattern, mask in _MASKS:
            text = pattern.sub(mask, text)
        return text


def curtsy(folder: Path, command: str, settings: Mapping[str, str]) -> Ran:
    run = Run(["curtsy", *command.split()], folder, settings)
    code = run.wait()
    return Ran(command, code, run.out, run.err)


@contextmanager
def web_of(size: Size, folder: Path, seed: int = 1) -> Iterator[list[str]]:
    """The web of the newcomer; the options that lead to it, because its names are in no DNS. `seed` decides what its
    pages say.
    """
    living = size.organizations - size.dead - size.untrusted
    context = Authority(folder).context("other.test")
    with (
        TinyWeb.start(hosts=living, pages=size.pages, faults=False, slow=size.slow, seed=seed) as web,
        _untrusted(context) as port,
    ):
        rules = [f"dead-*.tinyweb.test={CLOSED}", f"untrusted-*.tinyweb.test=127.0.0.1:{port}", web.resolve_rule]
        yield [word for rule in rules for word in ("--resolve", rule)]


@contextmanager
def _untrusted(context: ssl.SSLContext) -> Iterator[int]:
    """A server whose certificate nobody trusts; its port."""
    loop = asyncio.new_event_loop()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    loop.set_exception_handler(lambda *_: None)  # every client breaks the handshake off
    server = loop.run_until_complete(asyncio.start_server(answer, "127.0.0.1", 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.close()


def do(
    folder: Path, size: Size, settings: Mapping[str, str] | None = None, again: bool = True
) -> Iterator[tuple[str, Ran]]:
    """The job; yields each command with its name."""
    given = settings or {}
    (folder / "sites.txt").write_text("".join(f"{site}\n" for site in size.sites))
    project = folder / "orgs"
    start = "init orgs --profile organizations --contact you@example.org --from sites.txt"
    yield "init", curtsy(folder, start, given)
    with web_of(size, folder) as options:
        crawl = " ".join(["crawl", *options])
        yield "crawl", curtsy(project, crawl, given)
        for name, command in AFTERWARDS.items():
            yield name, curtsy(project, command, given)
    if again:
        with web_of(size, folder, seed=2) as options:
            yield "crawl-again", curtsy(project, " ".join(["crawl", *options]), given)
            yield "changes", curtsy(project, "changes", given)


class Opened(NamedTuple):
    """The report of a bundle in a browser."""

    records: int
    #: of the first record
    quotes: int
    tallest_row_px: float


def open_report(report: Path) -> Opened:
    """Open it in Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=find(), args=ARGUMENTS)
        page = browser.new_page()
        page.goto(report.as_uri())
        page.wait_for_selector("body[data-ready]")
        rows = [row.bounding_box() for row in page.locator("tr.row").all()]
        page.locator("tr.row").first.click()
        quotes = page.locator("button.quote").count()
        browser.close()
    return Opened(len(rows), quotes, max((box["height"] for box in rows if box), default=0))


def timed(begun: float) -> str:
    return f"{time.monotonic() - begun:6.1f} s"
