"""For all tests."""

from __future__ import annotations

import signal

# A shell that runs the tests in the background lets them ignore Ctrl-C, and so does every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
