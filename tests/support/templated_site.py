"""A site with three templates, and an honest language model: it reads the page in its prompt, as a person would.

    pages(...)     (URL, body, truth) of many pages; from `redesigned_from` on, each template has a new layout
    HonestModel    a model server that answers from the lines of the page in the prompt

The redesigns are of three kinds: everything stands elsewhere (`lamps`); the old place of a value has another value of
the same type (`rugs`); the old label of a value names another value, and the value has a new label (`bells`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from model_server import ModelServer

HOST = "http://goods.test"
TEMPLATES = ("lamps", "rugs", "bells")


def _text(description: str, *hints: str, **more: Any) -> dict[str, Any]:
    marks = {"x-curtsy": {"hints": list(hints)}} if hints else {}
    return {"type": ["string", "null"], "description": description, **more, **marks}


SCHEMA: dict[str, Any] = {
    "title": "Thing",
    "description": "A thing that is sold.",
    "type": "object",
    "properties": {
        "name": _text("What the thing is called."),
        "maker": _text("Who makes it.", "made", "maker", "workshop"),
        "weight": {"type": ["number", "null"], "description": "Net weight in kg."},
        "released": _text("Day of release.", "release", format="date"),
        "colors": {"type": "array", "items": {"type": "string"}, "description": "Colors it comes in."},
        "discount": {"type": ["integer", "null"], "description": "Discount in percent."},
    },
}
_MAKERS = (
    "Alder Works",
    "Quiet Goose",
    "Nora Field",
    "Juno & Sons",
    "The Mill",
    "Birch Brothers",
    "Oak Lane",
    "Iris Mott",
)
_COLORS = ("red", "moss green", "slate", "ochre", "white", "night blue", "plum")
_KINDS = {"lamps": "Lamp", "rugs": "Rug", "bells": "Bell"}
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November")
_WORDS = (
    "it",
    "was",
    "drawn",
    "by",
    "hand",
    "and",
    "built",
    "to",
    "last",
    "for",
    "many",
    "years",
    "near",
    "the",
    "sea",
)


class Made(NamedTuple):
    url: str
    body: bytes
    #: field -> value; an absent field has no key
    truth: dict[str, Any]
    template: str
    redesigned: bool


def pages(each: int, redesigned_from: int | None = None, seed: int = 7) -> Iterator[Made]:
    """`each` pages of every template, in turn."""
    for number in range(each):
        for template in TEMPLATES:
            yield _page(template, number, redesigned_from is not None and number >= redesigned_from, seed)


def _page(template: str, number: int, redesigned: bool, seed: int) -> Made:
    chance = random.Random(f"{seed} {template} {number}")
    year, month, day = chance.randint(2001, 2024), chance.randint(1, 11), chance.randint(1, 28)
    truth: dict[str, Any] = {
        "name": f"{_KINDS[template]} {chance.choice('ABCDEFGH')}{number + 100}",
        "maker": chance.choice(_MAKERS),
        "weight": chance.randint(11, 99) / 10,
        "released": f"{year}-{month:02d}-{day:02d}",
        "colors": chance.sample(_COLORS, chance.randint(1, 4)),
    }
    if chance.random() < 0.3:
        truth["discount"] = chance.choice((5, 10, 15, 20, 25))
    shown = truth | {"released": f"{day} {_MONTHS[month - 1]} {year}", "other": chance.randint(101, 300) / 10}
    layout = _LAYOUTS[template][redesigned]
    prose = "".join(f"<p>{_prose(chance)}</p>" for _ in range(chance.randint(2, 4)))
    body = (
        f"<!doctype html><html lang=en><title>{truth['name']}</title><body><nav><a href=/>Home</a></nav>"
        f"<main>{layout(shown)}<div class=text>{prose}</div></main>"
        f"<aside><h2>See also</h2><p class=teaser>Rug Z9 by The Mill, Weight: {shown['other']} kg</p></aside>"
        "<footer><p>Goods of the North, since 1962</p></footer>"
    )
    return Made(f"{HOST}/{template}/{number}-{chance.randint(100, 999)}", body.encode(), truth, template, redesigned)


def _prose(chance: random.Random) -> str:
    words = [chance.choice(_WORDS) for _ in range(45)]
    return f"{' '.join(words).capitalize()}."


def _items(given: dict[str, Any], before: str = "<ul class=colors>") -> str:
    return f"<h2>Colors</h2>{before}{''.join(f'<li>{one}</li>' for one in given['colors'])}</ul>"


def _off(given: dict[str, Any], tag: str = "p class=offer") -> str:
    return f"<{tag}>Discount: {given['discount']} %</{tag.split()[0]}>" if "discount" in given else ""


def _lamps(it: dict[str, Any]) -> str:
    return (
        f"<h1>{it['name']}</h1><dl class=facts><dt>Maker<dd>{it['maker']}<dt>Weight<dd>{it['weight']} kg"
        f"<dt>Released<dd>{it['released']}</dl>{_off(it)}{_items(it)}"
    )


def _new_lamps(it: dict[str, Any]) -> str:
    return (
        f"<section class=hero><div class=top><h1 class=big>{it['name']}</h1></div></section><section class=data>"
        f"<div class=line><span>Maker:</span> <em>{it['maker']}</em></div>"
        f"<div class=line><span>Weight:</span> <em>{it['weight']} kg</em></div>"
        f"<div class=line><span>Released:</span> <em>{it['released']}</em></div>"
        f"{_off(it, 'div class=deal')}{_items(it, '<ul class=palette>')}</section>"
    )


def _rugs(it: dict[str, Any]) -> str:
    return (
        f"<h1>{it['name']}</h1><p class=by>Made by <b>{it['maker']}</b></p>"
        f"<p class=weight>Weight: {it['weight']} kg</p><p class=day>Released on {it['released']}</p>"
        f"{_off(it)}{_items(it)}"
    )


def _new_rugs(it: dict[str, Any]) -> str:
    """The old place of the weight has the weight of the parcel."""
    return (
        f"<h1>{it['name']}</h1><p class=by>Made by <b>{it['maker']}</b></p><p class=weight>Weight: {it['other']} kg</p>"
        f"<p class=net>Net weight: {it['weight']} kg</p><p class=day>Released on {it['released']}</p>"
        f"{_off(it)}{_items(it)}"
    )


def _bells(it: dict[str, Any]) -> str:
    rows = (("Maker", it["maker"]), ("Weight", f"{it['weight']} kg"), ("Released", it["released"]))
    return f"<h1>{it['name']}</h1><table class=facts>{_rows(rows)}</table>{_off(it)}{_items(it)}"


def _new_bells(it: dict[str, Any]) -> str:
    """`Weight` is the parcel's now, and the net weight has a row of its own."""
    rows = (
        ("Released", it["released"]),
        ("Weight", f"{it['other']} kg"),
        ("Net weight", f"{it['weight']} kg"),
        ("Made by", it["maker"]),
    )
    return f"<h1>{it['name']}</h1><table class=facts>{_rows(rows)}</table>{_off(it)}{_items(it)}"


def _rows(rows: tuple[tuple[str, str], ...]) -> str:
    return "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows)


_LAYOUTS = {"lamps": (_lamps, _new_lamps), "rugs": (_rugs, _new_rugs), "bells": (_bells, _new_bells)}


# The model


_LINES = {
    "maker": re.compile(r"(?m)^(?:Maker|Made by)[:\s]+(?P<value>\S.*)$"),
    "net weight": re.compile(r"(?m)^Net weight[:\s]+(?P<value>[\d.]+) kg$"),
    "weight": re.compile(r"(?m)^Weight[:\s]+(?P<value>[\d.]+) kg$"),
    "released": re.compile(r"(?m)^Released(?: on)?[:\s]+(?P<value>\d+ \w+ \d{4})$"),
    "discount": re.compile(r"(?m)^Discount: (?P<value>\d+) %$"),
}
_PAGE = re.compile(r"(?s)Mark \w+: the pages begin\.\n(.*)\nMark \w+: the pages end\.")


class HonestModel(ModelServer):
    """Answers what the page in the prompt says; it finds nothing on a page that does not say it. A careless one
    overlooks a share of the values."""

    def __init__(self, careless: float = 0.0) -> None:
        super().__init__()
        chance = random.Random(1)
        self.answer = lambda body: {
            name: None if chance.random() < careless else value for name, value in answer(body).items()
        }
        self.usage = {"prompt_tokens": 900, "completion_tokens": 120}


def answer(body: dict[str, Any]) -> dict[str, Any]:
    found = _PAGE.search(body["messages"][1]["content"])
    text = found[1] if found else ""
    said: dict[str, Any] = {name: _line(name, pattern, text) for name, pattern in _LINES.items()}
    said["weight"] = said.pop("net weight") or said["weight"]
    called = re.search(r"(?m)^(?:Lamp|Rug|Bell) [A-H]\d+$", text)
    said["name"] = {"quote": called[0], "value": called[0]} if called else None
    said["colors"] = _colors(text)
    return said


def _line(name: str, pattern: re.Pattern[str], text: str) -> dict[str, Any] | None:
    found = pattern.search(text)
    if found is None:
        return None
    value: Any = found["value"].strip()
    if name.endswith("weight"):
        value = float(value)
    elif name == "discount":
        value = int(value)
    elif name == "released":
        day, month, year = value.split()
        value = f"{year}-{_MONTHS.index(month) + 1:02d}-{int(day):02d}"
    return {"quote": found[0], "value": value}


def _colors(text: str) -> list[dict[str, str]]:
    after = text.partition("\nColors\n")[2]
    found = []
    for line in after.splitlines():
        if line.strip("- ").lower() not in _COLORS:
            break
        found.append({"quote": line, "value": line.strip("- ")})
    return found
