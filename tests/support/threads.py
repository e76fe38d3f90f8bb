"""Work done at once."""

from __future__ import annotations

import threading
from collections.abc import Callable


def in_threads(*work: Callable[[], object]) -> None:
    """All of it, to its end."""
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
