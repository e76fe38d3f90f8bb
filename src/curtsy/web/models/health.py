"""What the probes answer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"
    version: str


class Ready(BaseModel):
    """Whether the parts that are needed answer."""

    ready: bool
    parts: dict[str, str] = Field(description="`ok`, or what is wrong with it, for store, frontier and broker.")
