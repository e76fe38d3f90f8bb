"""JSON in a language model's answer: also inside other text, and as far as it is complete when it was cut off."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic_core import from_json

_MAX_REASON = 300


def question_form(*, bounded: bool = False) -> dict[str, Any]:
    """Return the schema of an answer to a rubric's question; for a small model, bounded and without a reason."""
    words: dict[str, Any] = {"type": "string", **({"maxLength": 120} if bounded else {})}
    parts = {
        "quote": {"anyOf": [{"type": "null"}, words]},
        "score": {"enum": [0, 0.5, 1]} if bounded else {"type": "number"},
        **({} if bounded else {"reason": {"type": "string"}}),
    }
    return {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}


class NotJson(ValueError):
    """The message is sent back to the model."""


def parse(text: str) -> Any:
    """Return the JSON object in a text, ignoring everything around it: thoughts, a code fence, a greeting."""
    text = text.rpartition("</think>")[2]
    start = text.find("{")
    if start < 0:
        raise NotJson("it contains no JSON object")
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError) as error:
        raise NotJson(f"the JSON is invalid ({error})"[:120]) from None


def partial(text: str) -> Any:
    """Return the complete part of an object that was cut off; None if nothing is complete."""
    start = text.find("{")
    try:
        return from_json(text[start:], allow_partial=True) if start >= 0 else None
    except ValueError:
        return None


def judgment(said: Any) -> tuple[float, str, str | None]:
    """Return (score from 0 to 1, reason, quote); raise ValueError for any other answer."""
    score = said.get("score") if isinstance(said, dict) else None
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        raise NotJson('the object must have "score", a number from 0 to 1')
    quote, reason = said.get("quote"), said.get("reason")
    return (
        min(1.0, max(0.0, float(score))),
        str(reason or "")[:_MAX_REASON],
        quote.strip() if isinstance(quote, str) and quote.strip() else None,
    )
