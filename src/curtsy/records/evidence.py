"""Evidence as JSON. Stored records omit default values; `completed` adds them for readers."""

from __future__ import annotations

from typing import Any

from curtsy.core.claims import Evidence, SourceKind
from curtsy.core.text_layout import Label, LabelKind, PageBox, Part, Visibility

_DEFAULTS: dict[str, Any] = {"visibility": "visible", "labels": [], "part": None, "boxes": [], "ocr": False}
#: decimals of a box: a hundredth of a point
_DECIMALS = 2


def to_json(one: Evidence) -> dict[str, Any]:
    found: dict[str, Any] = {
        "page": one.page, "url": one.url, "source": one.source.value, "locator": one.locator, "sha256": one.sha256,
        "start": one.start, "end": one.end, "quote": one.quote,
    }  # fmt: skip
    more = {
        "visibility": one.visibility.value,
        "labels": [{**label._asdict(), "kind": label.kind.value} for label in one.labels],
        "part": None if one.part is None else one.part._asdict(),
        "boxes": [_box(box) for box in one.boxes],
        "ocr": one.ocr,
    }
    return found | {name: value for name, value in more.items() if value != _DEFAULTS[name]}


def _box(box: PageBox) -> dict[str, Any]:
    return {name: round(value, _DECIMALS) for name, value in box._asdict().items()}


def from_json(data: dict[str, Any]) -> Evidence:
    """The inverse of `to_json`."""
    part = data.get("part")
    return Evidence(
        page=data["page"], url=data["url"], source=SourceKind(data["source"]), locator=data["locator"],
        sha256=data["sha256"], start=data["start"], end=data["end"], quote=data["quote"],
        visibility=Visibility(data.get("visibility", "visible")),
        labels=tuple(Label(**{**one, "kind": LabelKind(one["kind"])}) for one in data.get("labels", ())),
        part=None if part is None else Part(**part), boxes=tuple(PageBox(**box) for box in data.get("boxes", ())),
        ocr=data.get("ocr", False),
    )  # fmt: skip


def completed(data: dict[str, Any]) -> dict[str, Any]:
    """Evidence with all its keys."""
    boxes = [{"width": 0.0, "height": 0.0} | box for box in data.get("boxes", ())]
    return data | {name: data.get(name, value) for name, value in _DEFAULTS.items()} | {"boxes": boxes}


def place_of(data: dict[str, Any]) -> str:
    """Where a quote is, for display: its URL, the page of a document, and whether a reader sees it at once."""
    part = data.get("part")
    said = [data["url"], data["locator"], "" if part is None else str(Part(**part))]
    said += ["" if data.get("visibility", "visible") == "visible" else data["visibility"]]
    said += ["recognized in a picture" if data.get("ocr") else ""]
    return ", ".join(one for one in said if one)


def labels_of(data: dict[str, Any]) -> str:
    """The labels of the table cell, for display; empty if the quote is not in a table."""
    return " | ".join(" ".join(one["text"].split()) for one in data.get("labels", ()))
