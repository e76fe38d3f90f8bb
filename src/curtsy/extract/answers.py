"""What a language model says, as JSON: also where it wraps it into words, and what it had said when it was cut off."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic_core import from_json

_MAX_REASON = 300


def question_form(*, bounded: bool = False) -> dict[str, Any]:
    """The form of an answer to a rubric's question; a small model's has an end and no reason."""
    words: dict[str, Any] = {"type": "string", **({"maxLength": 120} if bounded else {})}
    parts = {
        "quote": {"anyOf": [{"type": "null"}, words]},
        "score": {"enum": [0, 0.5, 1]} if bounded else {"type": "number"},
        **({} if bounded else {"reason": {"type": "string"}}),
    }
    return {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}


class NotJson(ValueError):
    """The message goes back to the model."""


def parse(text: str) -> Any:
    """The JSON object in it, whatever stands around: thoughts, a fence, a greeting."""
    text = text.rpartition("</think>")[2]
    start = text.find("{")
    if start < 0:
        raise NotJson("there is no JSON object in it")
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError) as error:
        raise NotJson(f"the JSON is broken ({error})"[:120]) from None


def begun(text: str) -> Any:
    """What of an object that was cut off is complete; None if nothing is."""
    start = text.find("{")
    try:
        return from_json(text[start:], allow_partial=True) if start >= 0 else None
    except ValueError:
        return None


def judgement(said: Any) -> tuple[float, str, str | None]:
    """Score from 0 to 1, reason, quote; ValueError if it is no such answer."""
    score = said.get("score") if isinstance(said, dict) else None
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        raise NotJson('the object must have "score", a number from 0 to 1')
    quote, reason = said.get("quote"), said.get("reason")
    return (
        min(1.0, max(0.0, float(score))),
        str(reason or "")[:_MAX_REASON],
        quote.strip() if isinstance(quote, str) and quote.strip() else None,
    )
