"""Where segments are kept: a folder, or an object store."""

from __future__ import annotations

import os
from pathlib import Path

from curtsy.store.objects import ObjectSegments
from curtsy.store.segments import Segments, SegmentStore


def open_segments(place: str | Path, max_bytes: int, owner: str = "") -> SegmentStore:
    """A folder (path or file:// URL), or an object store (s3://bucket/prefix, ...); `owner` begins writers' names."""
    text = str(place)
    if "://" not in text:
        return Segments(Path(place), max_bytes, owner + os.urandom(4).hex())
    if text.startswith("file://"):
        return Segments(Path(text.removeprefix("file://")), max_bytes, owner + os.urandom(4).hex())
    return ObjectSegments(text, owner + os.urandom(4).hex())
