"""`crawl --out`: an output that grows while the crawl runs, and is complete when the process ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock

from curtsy.cli.show import note
from curtsy.core.errors import CurtsyError, SegmentsUnavailable, UsageError
from curtsy.core.model import Crawl
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.core.threads import in_thread
from curtsy.export import pages
from curtsy.export.live import LiveObject, LiveOutput, live_output
from curtsy.export.live_files import Reservation, held
from curtsy.export.live_notes import notes_of
from curtsy.export.page_rows import PageRows, segments_of
from curtsy.export.tables import Format
from curtsy.export.targets import ObjectPlace, Target, is_special, target_of
from curtsy.services.document_process import limits_of
from curtsy.store.engine import Store

#: seconds between two writes; on PostgreSQL each of them waits for the commits in progress
EVERY_S = {"sqlite": 1.0, "postgresql": 5.0}


def output_before(crawl: str, settings: Settings) -> Target:
    """The output that an interrupted crawl was writing, to continue it."""
    found = notes_of(settings.data_dir, crawl)
    if len(found) != 1:
        return None
    note(f"Continuing {found[0].path}")
    return target_of(found[0].path)


def output_of(out: str | None, from_: Path | None, config: Path | None, settings: Settings) -> Target:
    """The output that --out names. Raise UsageError if it would replace what the crawl reads or stores."""
    target = target_of(out)
    if not isinstance(target, Path):
        return target
    found = target.resolve()
    for path, what in ((from_, "the file with the seeds"), (config, "the settings file")):
        if path is not None and found == path.resolve():
            raise UsageError(f"--out {target} is {what}, which the output would replace. Use another --out.")
    if found.is_relative_to(settings.segments_dir.resolve()):
        raise UsageError(f"--out {target} is in the folder with the stored pages. Use another --out.")
    return target


@contextmanager
def following(settings: Settings, out: Path | ObjectPlace) -> Iterator[Follower]:
    """Check the output, and keep it from before the crawl is created until it ends."""
    chosen = pages.format_of(out, None)
    pages.check_target(out, chosen)
    if not isinstance(out, Path):
        yield Follower(settings, out, chosen)
    elif is_special(out):
        with held(out):
            yield Follower(settings, out, chosen)
    else:
        with closing(Reservation(out, chosen)) as reserved:
            yield Follower(settings, out, chosen, reserved)


class Follower:
    """Writes what processes of a crawl commit. A failed write does not end the crawl: `finish` raises its error."""

    def __init__(
        self, settings: Settings, out: Path | ObjectPlace, chosen: Format, reserved: Reservation | None = None
    ) -> None:
        self._settings, self._out, self._chosen, self._reserved = settings, out, chosen, reserved
        self._lock = Lock()
        self._store: Store | None = None
        self._output: LiveOutput | LiveObject | None = None
        self._error: Exception | None = None

    async def follow(self, crawl: Crawl) -> None:
        """Write until it is canceled."""
        await in_thread(self._begin, crawl)
        while self._error is None and self._store is not None:
            await asyncio.sleep(EVERY_S[self._store.dialect])
            await in_thread(self._step)

    def finish(self, crawl: Crawl, *, finished: bool) -> None:
        """Write the rest and complete the output; raise what went wrong."""
        self._begin(crawl)
        self._step(is_last=True)
        self._close(finished)
        if self._error is not None:
            raise self._error

    def _begin(self, crawl: Crawl) -> None:
        with self._lock:
            if self._store is not None:
                return
            self._store = Store.open(self._settings.effective_store_url)
            rows = PageRows(self._store, segments_of(self._settings), crawl, limits=limits_of(self._settings))
            try:
                self._output = live_output(rows, self._out, self._chosen, self._settings.data_dir, self._reserved)
            except (OSError, CurtsyError) as error:
                self._error = _named(error, self._out)

    def _step(self, is_last: bool = False) -> None:
        with self._lock:
            if self._output is None or self._error is not None:
                return
            try:
                self._output.step()
            except SegmentsUnavailable as error:
                # An object store may be back at the next step.
                log("output_not_written", level="warning", error=str(error))
                if is_last:
                    self._error = error
            except (OSError, CurtsyError) as error:
                self._error = _named(error, self._out)

    def _close(self, finished: bool) -> None:
        try:
            if self._output is not None:
                self._output.close(finished=finished and self._error is None)
        except (OSError, CurtsyError) as error:
            self._error = self._error or _named(error, self._out)
        finally:
            if self._store is not None:
                self._store.close()


def _named(error: Exception, out: Path | ObjectPlace) -> Exception:
    """Add the name of the output to an error of the operating system."""
    if not isinstance(error, OSError) or error.errno is None or error.filename is not None:
        return error
    return OSError(error.errno, error.strerror, str(out))
