"""Blocking work in threads, next to an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(fn: Callable[..., T], *args: Any) -> T:
    """Runs fn(*args) in the loop's thread pool, with the caller's request_id."""
    return await asyncio.get_running_loop().run_in_executor(None, copy_context().run, fn, *args)
