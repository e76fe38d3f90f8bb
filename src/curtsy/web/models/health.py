"""Health checks."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"
    version: str


class Ready(BaseModel):
    """Whether the required services answer."""

    ready: bool
    parts: dict[str, str] = Field(
        description="`ok`, or what is wrong, for store, frontier, broker, beat, and segments in an object store."
    )
