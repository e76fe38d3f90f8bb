"""What the probes answer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"
    version: str
