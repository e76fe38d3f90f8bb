"""The main content of real manuals from Debian packages: Curtsy beside other libraries.

The truth comes from the markup that each generator is known to write: its element for the content, without its menus.
The pages are downloaded once with `apt-get download`; none of them is in the repository.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from main_content_score import words
from selectolax.lexbor import LexborHTMLParser

from curtsy.content.document import Document
from tests.judge import places

_SCRIPT = Path(__file__).parent / "peers_main_content.py"
_FOLDER = places.CACHE / "manuals"
_PAGES = 6
_SIZE = range(3_000, 200_000)
_LEAST_TEXT = 500
#: package -> the element of the content, and what is not content within it
_PACKAGES = {
    "aptitude-doc-es": ("body", ""),
    "aptitude-doc-ru": ("body", ""),
    "debian-reference-fr": ("body", ""),
    "developers-reference-de": ("[role=main]", ""),
    "developers-reference-ja": ("[role=main]", ""),
    "exim4-doc-html": ("body", "#branding,#header,#footer,#nav_flow,#nav_flow_wrapper,#top,.navigation"),
    "git-doc": ("body", "#footer"),
    "mkdocs-doc": ("[role=main]", ""),
    "mpich-doc": ("body", ""),
    "nodejs-doc": ("#apicontent", ".mark,#toc"),
    "python-flask-doc": ("div.body", ""),
    "zsh-doc": ("body", ".header,.nav-panel"),
}
_MENUS = "script,style,nav,noscript,button,.headerlink,.navheader,.navfooter"


def _fetch(package: str) -> list[Path]:
    """Pages of a package, evenly over its files."""
    folder = _FOLDER / package
    if not folder.is_dir():
        work = places.CACHE / "work" / package
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        subprocess.run(["apt-get", "-q", "download", package], cwd=work, capture_output=True, check=False)
        for deb in work.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", deb, folder], check=True)
        shutil.rmtree(work)
    found = sorted(path for path in folder.rglob("*.html") if path.is_file() and path.stat().st_size in _SIZE)
    return found[:: max(1, len(found) // _PAGES)][:_PAGES]


def _truth(package: str, html: str) -> str | None:
    """The text of the content; None: the page has another form, or hardly any text."""
    content, others = _PACKAGES[package]
    root = LexborHTMLParser(html).css_first(content)
    if root is None:
        return None
    for selector in (_MENUS, *filter(None, [others])):
        for node in root.css(selector):
            node.decompose()
    text = root.text(separator=" ")
    return text if len(text) >= _LEAST_TEXT else None


def _f1(text: str, truth: str) -> float:
    found, wanted = Counter(words(text)), Counter(words(truth))
    return 2 * (found & wanted).total() / max(1, found.total() + wanted.total())


def judge(python: Path | None, show_worst: int, raise_floors: bool) -> list[str]:
    truths: dict[str, str] = {}
    texts: dict[str, dict[str, str]] = {"Curtsy": {}}
    chosen = _FOLDER / "chosen"
    shutil.rmtree(chosen, ignore_errors=True)
    chosen.mkdir(parents=True)
    for package in _PACKAGES:
        for number, path in enumerate(_fetch(package)):
            html = path.read_bytes().decode("utf-8", "replace")
            name = f"{package}-{number}"
            if (truth := _truth(package, html)) is not None:
                truths[name] = truth
                (chosen / f"{name}.html").write_text(html, "utf-8")
                document = Document.parse(html.encode(), "text/html; charset=utf-8", f"http://manual.test/{path.name}")
                texts["Curtsy"][name] = document.main_text()
    if not truths:
        return ["## Manuals", "", "No package could be downloaded."]
    if python is not None:
        run = subprocess.run([python, "-P", _SCRIPT, chosen], stdout=subprocess.PIPE, check=True)
        texts |= {reader: {name: one[0] for name, one in of.items()} for reader, of in json.loads(run.stdout).items()}
    return _report(truths, texts, show_worst)


def _report(truths: dict[str, str], texts: dict[str, dict[str, str]], show_worst: int) -> list[str]:
    scores = {reader: {name: _f1(of[name], truth) for name, truth in truths.items()} for reader, of in texts.items()}
    head = "| reader | F1 |"
    rows = [f"| {reader} | {sum(of.values()) / len(of):.3f} |" for reader, of in scores.items()]
    lines = [f"## Manuals: {len(truths)} pages of {len(_PACKAGES)} packages", "", head, places.rule(head), *rows]
    lowest = sorted(scores["Curtsy"].items(), key=lambda one: one[1])[:show_worst]
    return lines + [f"- {name}: F1 {f1:.3f}" for name, f1 in lowest]
