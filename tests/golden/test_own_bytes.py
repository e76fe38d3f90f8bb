"""No value is invented: on every golden page and on installed documentation, each value has its bytes in the page."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from own_bytes import invented

from curtsy.content.charset import charset_of, decode
from curtsy.content.document import Document

GOLDEN = sorted(Path(__file__).parent.rglob("*.html"))
#: manuals of installed Debian packages
INSTALLED = Path("/usr/share/doc")
URL = "https://site.example/dir/page?q=1"


def _read(body: bytes) -> list[tuple[str, str]]:
    text = decode(body, charset_of(body, "text/html"))
    return invented(Document.parse(body, "text/html", URL), text)


@pytest.mark.parametrize("path", GOLDEN, ids=[path.stem for path in GOLDEN])
def test_no_value_of_a_golden_page_is_invented(path: Path) -> None:
    assert _read(path.read_bytes()) == []


def test_no_value_of_installed_documentation_is_invented() -> None:
    pages = list(islice(sorted(INSTALLED.rglob("*.html")), 400))
    if not pages:
        pytest.skip("no HTML in /usr/share/doc")
    found = {str(path): made for path in pages if path.is_file() and (made := _read(path.read_bytes()))}
    assert found == {}


@pytest.mark.parametrize(
    ("html", "made"),
    [
        ('<div itemscope><a itemprop=url href="/x">y</a></div>', []),
        ('<script type="application/ld+json">{"a": "b\\u00e9", "n": 79.50}</script>', []),
        ('<meta property="og:title" content="R&amp;D">', []),
    ],
)
def test_values_with_bytes_are_not_reported(html: str, made: list[tuple[str, str]]) -> None:
    assert _read(html.encode()) == made


def test_an_invented_value_is_reported() -> None:
    html = '<div itemscope><img itemprop="image" src="/a.png"><b itemprop="name">N</b></div>'
    document = Document.parse(html.encode(), "text/html", URL)
    assert invented(document, html) == []
    assert invented(document, html.replace("/a.png", "").replace(">N<", "><")) == [
        ("microdata", "https://site.example/a.png"),
        ("microdata", "N"),
    ]
