"""For all tests."""

from __future__ import annotations

import gc
import signal

# A shell that runs the tests in the background lets them ignore signals, and so does every process that they start.
for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)


def pytest_unconfigure() -> None:
    """Crawls in this process freeze what was imported; modules that look for leaks at exit would find some."""
    gc.unfreeze()
