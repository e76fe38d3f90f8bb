"""Runs a crawl in this process and its helpers. Ctrl-C stops it: once cleanly, twice at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

import uvloop

from curtsy.cli import DEAD_LETTERS, DONE, INTERRUPTED, UNAVAILABLE, Interrupted, next_commands
from curtsy.cli.helpers import Helpers
from curtsy.cli.keys_pressed import Keys
from curtsy.cli.progress import Progress
from curtsy.cli.show import note
from curtsy.cli.worker import tidy
from curtsy.control import submit
from curtsy.core import clock
from curtsy.core.errors import NoBrowser, UnknownCrawl
from curtsy.core.model import INTERRUPTED as STATE_INTERRUPTED
from curtsy.core.model import Counts, Crawl, CrawlState
from curtsy.core.observe import counters
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import keep
from curtsy.core.shutdown import StopFlag, end_by
from curtsy.crawl import run
from curtsy.fetch import chromium
from curtsy.services import backends
from curtsy.store import crawls, summaries
from curtsy.store.engine import Store

#: after the drain, a helper has this long to commit and exit
LEAVE_S = 20.0
#: then this process has this long to close: an unavailable database is retried for 90 s
CLOSE_S = 150.0
#: states of a crawl that a process works on
_UNFINISHED = (CrawlState.RUNNING, CrawlState.EXTRACTING)
#: work that runs concurrently with a crawl until it is canceled
Beside = Callable[[Crawl], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The state of a crawl when the command ends."""

    crawl: Crawl
    counts: Counts
    #: on which it has or had URLs, and to which it sent requests: `audit` counts these
    hosts: int
    requested_hosts: int
    elapsed_s: float
    #: counters of the processes: frontier calls, commits, pages by status, ...
    counters: dict[str, int]
    #: by status
    records: dict[str, int] = field(default_factory=dict)
    #: published records with fields that need a decision
    contradicted: int = 0
    #: why it has no page
    no_page: str | None = None

    @property
    def status(self) -> dict[str, Any]:
        """What `--json` says of the crawl."""
        return {
            "id": self.crawl.id, "state": self.state, "counts": asdict(self.counts),
            "elapsed_s": round(self.elapsed_s, 3),
        }  # fmt: skip

    @property
    def state(self) -> str:
        """`interrupted` if no process works on it any more, although it has not ended."""
        return STATE_INTERRUPTED if self.crawl.state in _UNFINISHED else self.crawl.state.value

    @property
    def interrupted(self) -> bool:
        return self.crawl.state not in (CrawlState.FINISHED, CrawlState.CANCELLED)

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        # A crawl without a page counts as failed, even if every URL was only skipped.
        return DEAD_LETTERS if self.counts.failed or self.counts.failed_stages or not self.counts.pages else DONE


def drive(
    settings: Settings,
    what: Crawl | str,
    seeds: Iterable[str],
    shown: Progress,
    processes: int = 1,
    options: Mapping[str, Any] | None = None,
    give_up: bool = False,
    beside: Beside | None = None,
) -> Ended:
    """Submit a new crawl, or resume the one of that id with changed options; run it until it ends or is interrupted.

    `beside` runs while the crawl runs.
    """
    # Until the crawl handles it, Ctrl-C cancels the task that the runner runs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    helpers = Helpers(settings)
    # Before this process has an event loop, threads and an open database.
    helpers.start(processes - 1)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, Keys(give_up) as keys:
            counted = runner.run(_drive(settings, what, seeds, shown, helpers, options, keys, beside))
    except KeyboardInterrupt:
        counted = {}
        _give_up(settings, what)
    with Store.open(settings.effective_store_url) as store:
        ended = _ended(store, settings, what if isinstance(what, str) else what.id, counted)
    if ended.interrupted:
        note_interrupted(settings, ended.crawl)
        # The loop no longer handles Ctrl-C: it may still interrupt an export, with the same exit code.
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    return ended


def note_interrupted(settings: Settings, crawl: Crawl) -> None:
    """Record for the dashboard that no process works on the crawl. With a frontier of its own, a fleet may
    continue it.
    """
    if settings.frontier_url is None and crawl.state in _UNFINISHED:
        with Store.open(settings.effective_store_url) as store:
            store.run(crawls.note_reason, crawl.n, STATE_INTERRUPTED)


async def _drive(
    settings: Settings,
    what: Crawl | str,
    seeds: Iterable[str],
    shown: Progress,
    helpers: Helpers,
    options: Mapping[str, Any] | None,
    keys: Keys,
    beside: Beside | None,
) -> dict[str, int]:
    stop = StopFlag()
    following: asyncio.Task[None] | None = None
    _check_installed(settings, what)
    built = backends.build(settings)
    try:
        await built.open()
        if isinstance(what, str):
            crawl = await submit.resume_crawl(built, what, options)
        else:
            crawl = await submit.submit(built, what, Interruptible(seeds))
        helpers.assign(crawl.n)
        _handle_signals(stop, next_commands.resume(crawl.id, keep(settings)), helpers)
        keys.listen(asyncio.get_running_loop())
        if beside is not None:
            following = asyncio.create_task(beside(crawl))
        try:
            await run.run(built, crawl.n, shown.update, stop, tidy=lambda: tidy(built), gives_up=lambda: keys.gives_up)
        except NoBrowser as error:
            raise NoBrowser(f"{error}\n{next_commands.resume(crawl.id, keep(settings))}") from error
        if crawl.schema is not None or crawl.webhook is not None:
            from curtsy.cli import make_records  # start-up: few crawls make records

            await make_records.make(built, crawl, shown, stop)
    finally:
        end_by(settings.drain_s + LEAVE_S + CLOSE_S, UNAVAILABLE, asyncio.get_running_loop())
        if following is not None:
            following.cancel()
        await helpers.wait(settings.drain_s + LEAVE_S)
        await built.close()
    return dict(counters + helpers.counted)


def _check_installed(settings: Settings, what: Crawl | str) -> None:
    """A crawl that needs a browser or the local model does not start without it."""
    if isinstance(what, str):
        with Store.open(settings.effective_store_url, create=False) as store, store.read() as tx:
            what = crawls.get(tx, what)
    if what.render != "never":
        chromium.check_installed(settings)
    if what.schema is not None and (what.llm or settings.llm_kind) == "local":
        from curtsy.records import crawl_model  # start-up: few crawls have a local model

        crawl_model.check_installed(settings, what)


class Interruptible:
    """Seeds that Ctrl-C also interrupts while one is awaited, for instance from standard input.

    Elsewhere the handler raises nothing: an exception in a callback of the loop or of a library can crash the process.
    """

    def __init__(self, seeds: Iterable[str]) -> None:
        self._seeds = iter(seeds)
        self._reading = False
        self._otherwise = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, self._interrupt)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self._reading = True
        try:
            return next(self._seeds)
        finally:
            self._reading = False

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._reading:
            raise KeyboardInterrupt
        if callable(self._otherwise):
            self._otherwise(number, frame)


def _give_up(settings: Settings, what: Crawl | str) -> None:
    """Cancel a crawl whose seeds were still arriving: the rest of them is lost."""
    with Store.open(settings.effective_store_url) as store:
        with store.read() as tx:
            found = [c for c in crawls.list_all(tx, states=(CrawlState.LOADING,)) if c.id == getattr(what, "id", "")]
        for crawl in found:
            state, reason, now_ms = CrawlState.CANCELLED, "upload_incomplete", clock.now_ms()
            store.run(crawls.set_state, crawl.n, state, reason, now_ms, only_from=(CrawlState.LOADING,))
            note("The crawl was canceled: its seeds were still being read. Start it again.")
            raise Interrupted(INTERRUPTED)


def _ended(store: Store, settings: Settings, id: str, counted: dict[str, int]) -> Ended:
    with store.read() as tx:
        try:
            crawl = crawls.get(tx, id)
        except UnknownCrawl:
            raise Interrupted(INTERRUPTED) from None  # its first seeds were not written yet
        counts = crawls.counts(tx, crawl.n)
        made, contradicted = ({}, 0) if crawl.schema is None else _records(tx, crawl)
        return Ended(
            crawl=crawl,
            counts=counts,
            no_page=None if counts.pages else _why_no_page(tx, crawl, counts, settings),
            hosts=summaries.hosts_of(tx, crawl.n),
            requested_hosts=summaries.requested_hosts(tx, crawl.n),
            elapsed_s=crawl.elapsed_s(clock.now_ms()),
            counters=counted,
            records=made,
            contradicted=contradicted,
        )


def _records(tx: Any, crawl: Crawl) -> tuple[dict[str, int], int]:
    """Its records by status, and how many are published with fields that need a decision."""
    from curtsy.cli import make_records  # start-up: few crawls make records

    return make_records.by_status(tx, crawl), make_records.contradicted(tx, crawl)


def _why_no_page(tx: Any, crawl: Crawl, counts: Counts, settings: Settings) -> str:
    from curtsy.cli import no_page  # start-up: explanations, for crawls without a page

    return no_page.why(tx, crawl, counts, settings)


def _handle_signals(stop: StopFlag, hint: str, helpers: Helpers) -> None:
    """Once: finish requests in flight. Twice: abort them. A third time: end this process immediately."""
    messages = [
        f"Stopping: requests in flight finish. Press Ctrl-C again to stop at once. Resume with: {hint}",
        f"Stopping at once. Resume with: {hint}",
    ]

    def pressed() -> None:
        if not messages:
            os._exit(INTERRUPTED)
        helpers.send("stop")
        stop.request()
        with suppress(OSError):  # the terminal may be gone
            note(messages.pop(0))

    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # unless started by nohup
        signals.append(signal.SIGHUP)
    for number in signals:
        asyncio.get_running_loop().add_signal_handler(number, pressed)
