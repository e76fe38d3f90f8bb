"""Reading a page within a time limit: its facts and links, on the event loop or in another process.

Invariant: no page blocks the loop or a stage for much longer than `parse_timeout_s`. Three mechanisms ensure it:

    linear code    every pattern and every reader needs time in proportion to the page (test_linear_patterns.py). The
                   compiled scanner, which reads most pages, cannot be interrupted; it reads pages of up to 2 MB
    `within`       interrupts work that exceeds its CPU time: on the main thread by a kernel timer, whose signal
                   interrupts Python code and `re`; on other threads by an exception between two bytecodes
    a process      the HTML parser cannot be interrupted. A page that `parser_limits.is_heavy` is read in a separate
                   process (services/reader_process.py), which the kernel kills when its time is up. A smaller page
                   cannot keep the parser busy for a second

A page that takes too long becomes the dead letter `parse_timeout`; its body is stored. All limits are CPU time, so a
busy machine produces no dead letters. See docs/decisions/0027-time-limit-for-parsing.md.
"""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from curtsy.content.charset import charset_of
from curtsy.content.head import as_utf8, base_url_of, language_of, robots_words, title_of
from curtsy.content.links import with_encoded_queries
from curtsy.content.needs_browser import has_scripts
from curtsy.content.page_scan import scan
from curtsy.core import failpoints
from curtsy.rules.urls import normalise

T = TypeVar("T")
#: number of checks of the elapsed time within the time limit
_LOOKS = 5
#: the scanner cannot be interrupted between two values; it needs at most 30 ns per byte, usually 2
_MAX_SCANNED_BYTES = 2 << 20


class ParseTimeout(BaseException):
    """Reading took too long. Not an Exception, so that no reader mistakes it for an error in the page's data."""


class Reading(NamedTuple):
    """The facts of an HTML page that the crawl needs."""

    title: str | None
    charset: str
    canonical: str | None
    language: str | None
    noindex: bool
    nofollow: bool
    base_url: str
    #: as written, without their fragments, in document order; empty if the page asks not to follow them
    links: list[str]
    #: parts of the page could not be read
    truncated: bool
    #: why it needs a browser; None: it does not, or it was not checked
    browser: str | None


def read_by_scan(body: bytes, content_type: str | None, url: str, agent: str, auto_render: bool) -> Reading | None:
    """The same as `tree_reading.read_tree`, at a tenth of its cost; None if a tree is needed."""
    if failpoints.slow_page:
        failpoints.be_slow(url)
    # Whether a page with scripts needs a browser depends on its text.
    if len(body) > _MAX_SCANNED_BYTES or (auto_render and has_scripts(body)):
        return None
    charset = charset_of(body, content_type, url=url)
    found = scan(as_utf8(body, charset), agent.lower())
    if isinstance(found, str):
        return None
    words = robots_words(" ".join(found.robots)) if found.robots else ()
    nofollow = "nofollow" in words or "none" in words
    base_url = base_url_of(found.base, url)
    return Reading(
        None if found.title is None else title_of(found.title),
        charset,
        None if found.canonical is None else normalise(found.canonical, base_url),
        language_of(found.language),
        "noindex" in words or "none" in words,
        nofollow,
        base_url,
        [] if nofollow else with_encoded_queries(found.links, charset),
        False,
        None,
    )


def within(seconds: float, work: Callable[..., T], *given: Any) -> T:
    """The result of the work; ParseTimeout if it takes more CPU time than that. Not to be nested."""
    if threading.get_ident() == _timer.thread and seconds / _LOOKS >= _timer.every:
        return _timer.run(seconds, work, *given)
    return _prepared(seconds).run(seconds, work, *given)


def _prepared(seconds: float) -> _Timer | _Watch:
    """Whether this is the main thread and its timer signal is not used by other code."""
    mine = _timer.thread == threading.get_ident()
    if not mine and threading.current_thread() is threading.main_thread():
        mine = signal.getsignal(signal.SIGVTALRM) in (signal.SIG_DFL, signal.SIG_IGN, _timer.look)
    if not mine:
        return _watch
    _timer.start(seconds / _LOOKS)
    return _timer


class _Timer:
    """Limits work on the main thread.

    A timer of the kernel counts this process's CPU time. It keeps running from page to page, so that few of them pay
    for starting it, and stops at the first check without a page: it must not outlive its handler.
    """

    def __init__(self) -> None:
        #: the main thread, once the timer runs
        self.thread = 0
        #: CPU time between two checks
        self.every = math.inf
        self._working = False
        self._limit = 0.0
        self._began: float | None = None

    def start(self, every: float) -> None:
        signal.signal(signal.SIGVTALRM, self.look)
        signal.siginterrupt(signal.SIGVTALRM, False)
        signal.setitimer(signal.ITIMER_VIRTUAL, every, every)
        self.thread, self.every = threading.get_ident(), every

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self.forget()

    def forget(self) -> None:
        """A forked process has no timers."""
        self.thread, self.every, self._working = 0, math.inf, False

    def run(self, seconds: float, work: Callable[..., T], *given: Any) -> T:
        self._limit, self._began, self._working = seconds, None, True
        try:
            return work(*given)
        finally:
            self._working = False

    def look(self, _signal: int, _frame: FrameType | None) -> None:
        """Raised each time, because other code may swallow the exception."""
        if not self._working:
            self.stop()
            return
        now = time.thread_time()
        if self._began is None:
            # The time before the first check may belong to another page or another thread.
            self._began = now
        elif now - self._began >= self._limit - self.every:
            raise ParseTimeout


class _Watch:
    """Limits work on other threads: a thread checks their CPU time, and raises an exception in them to end the work."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """A forked process has no other threads, but inherits the state of their locks."""
        self._lock = threading.Lock()
        self._some = threading.Event()
        #: thread -> CPU time at which its work must end
        self._until: dict[int, float] = {}
        self._told: set[int] = set()
        self._every = 1.0
        self._thread: threading.Thread | None = None

    def run(self, seconds: float, work: Callable[..., T], *given: Any) -> T:
        me = threading.get_ident()
        with self._lock:
            self._until[me] = time.thread_time() + seconds
            self._every = min(self._every, seconds / _LOOKS)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="reading", daemon=True)
                self._thread.start()
        if not self._some.is_set():
            self._some.set()
        try:
            return work(*given)
        finally:
            with self._lock:
                del self._until[me]
                if me in self._told:
                    self._told.discard(me)
                    _raise_in(me, None)  # cancels the exception if it was not raised yet

    def _watch(self) -> None:
        while True:
            self._some.wait()
            time.sleep(self._every)
            with self._lock:
                if not self._until:
                    self._some.clear()
                for thread, until in self._until.items():
                    if time.clock_gettime(time.pthread_getcpuclockid(thread)) >= until:
                        self._told.add(thread)
                        _raise_in(thread, ParseTimeout)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    given = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)


_timer, _watch = _Timer(), _Watch()
atexit.register(_timer.stop)
os.register_at_fork(after_in_child=_timer.forget)
os.register_at_fork(after_in_child=_watch.forget)
