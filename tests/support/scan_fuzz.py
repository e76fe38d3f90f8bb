"""Random pages on which the page scanner and the tree must agree.

    PYTHONPATH=tests/support:tools python -m scan_fuzz [--seconds 60] [--seed N] [--pages FOLDER] [--sanitize]

`--pages` changes bytes of the HTML files below a folder as well. `--sanitize` compiles the scanner with
AddressSanitizer and UndefinedBehaviorSanitizer, which end the process at the first error.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import build_scanner

from curtsy.content import page_scan
from curtsy.content.reading import Reading, read_by_scan
from curtsy.content.tree_reading import read_tree

_NAMES = (
    "a area link base meta title iframe html head body script style textarea xmp noembed noframes noscript svg math "
    "select option optgroup table tr td th tbody thead tfoot caption col colgroup p div li ul b i font nobr span form "
    "button h1 br img input object marquee pre frame frameset template plaintext g path use desc foreignobject mi mo "
    "mrow annotation annotation-xml image dd dt dl applet ruby rt rp hr em code u s custom-x keygen isindex menuitem "
    "listing center mtext ms mn defs circle text metadata o:p"
)
_TAGS = tuple(_NAMES.split())
_ATTRIBUTES = (
    *("href=x", 'href="y z"', "href='q#f'", 'href="#f"', 'href=" w "', "href", 'href=""', "href=", "src=s", "lang=de"),
    *("rel=nofollow", 'rel="next x"', "rel=canonical", "rel=alternate", 'rel="stylesheet alternate"', "name=robots"),
    *("name=Curtsy", "content=noindex", 'content="nofollow, x"', "http-equiv=refresh", "http-equiv=x", "lang", "id=1"),
    *('x="a>b"', "y='<a href=n>'", 'href="a&amp;b"', 'href="&#38;c&copy=1"', "xlink:href=v", "href=d/", '"', "=", "/"),
    *("type=hidden", "color=red", 'encoding="text/html"', 'href="\r\n r\0"', 'content="0;url=k"', 'href="a #f"'),
)
TEXTS = (
    *("t", " ", "\n", "&amp;", "&copy", "<", ">", "<!--", "-->", "--!>", "<!-->", "<!--->", "<![CDATA[", "] ]>", "]]>"),
    *("<?x>", "</>", "</ x>", "<!x>", "<!doctype html>", "\0", "\xe9", "<!-- c -->", "--", "&notit;", "&#x80;", "\r"),
)
_BYTES = (*(bytes((n,)) for n in range(256)), b"<a href=", b"</a>", b"<table>", b"<svg>", b"<!--", b"-->", b"&#", b"<p")


def soup(dice: random.Random) -> bytes:
    """Tags in any order, mostly of a few elements, so that they meet."""
    tags = [*(dice.sample(_TAGS, dice.randint(2, 12)) if dice.random() < 0.8 else _TAGS), "a", "a"]
    out = []
    for _ in range(dice.randint(1, 40)):
        which = dice.random()
        if which < 0.5:
            out.append(_start_tag(dice, dice.choice(tags)))
        elif which < 0.8:
            out.append(f"</{dice.choice(tags)}" + dice.choice((">", ">", ">", ">", " >", ' x="">', "")))
        else:
            out.append(dice.choice(TEXTS))
    return "".join(out).encode("utf-8" if dice.random() < 0.9 else "latin-1")


def _start_tag(dice: random.Random, tag: str) -> str:
    count = dice.choice((1, 1, 2, 3) if tag in ("a", "link", "meta", "base") else (0, 0, 1, 1, 2, 3))
    attributes = "".join(dice.choice((" ", " ", "\n", "/", "")) + dice.choice(_ATTRIBUTES) for _ in range(count))
    return f"<{tag.upper() if dice.random() < 0.05 else tag}{attributes}" + dice.choice((">", ">", ">", "/>", " >", ""))


def mutated(page: bytes, dice: random.Random) -> bytes:
    """A page with some bytes or tags inserted, removed or moved."""
    for _ in range(dice.randint(1, 8)):
        at = dice.randrange(len(page) + 1)
        end = min(len(page), at + dice.choice((0, 1, 2, 8, 60, 400)))
        which = dice.random()
        if which < 0.4:
            page = page[:at] + dice.choice(_BYTES) + page[at:]
        elif which < 0.8:
            page = page[:at] + dice.choice(_BYTES) + page[end:]
        else:
            to = dice.randrange(len(page) + 1)
            page = page[:to] + page[at:end] + page[to:]
    return page


def difference(page: bytes, content_type: str | None = "text/html; charset=utf-8") -> str | None:
    """What the scanner and the tree say about a page, if it is not the same. The scanner may need a tree."""
    given = (page, content_type, "http://a.test/dir/page", "curtsy", False)
    scanned = read_by_scan(*given)
    if scanned is None:
        return None
    tree = read_tree(*given)
    # parser_limits.py finds tags by patterns: a comment that begins within a tag can make it cut a page without need.
    if scanned == tree or tree.truncated:
        return None
    parts = [
        f"{name}: scanner {one!r}, tree {other!r}"
        for name, one, other in zip(Reading._fields, scanned, tree, strict=True)
        if one != other
    ]
    return f"{page!r}\n  " + "\n  ".join(parts)


def smallest(page: bytes) -> bytes:
    """A part of a page that still makes a difference."""
    size = max(1, len(page) // 2)
    while size:
        at = 0
        while at < len(page):
            less = page[:at] + page[at + size :]
            if difference(less) is not None:
                page = less
            else:
                at += size
        size //= 2
    return page


def load(path: Path) -> Any:
    """The compiled module, from any file."""
    loader = importlib.machinery.ExtensionFileLoader("_page_scan", str(path))
    spec = importlib.util.spec_from_loader("_page_scan", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _pages(options: argparse.Namespace, dice: random.Random) -> Iterator[bytes]:
    files = [] if options.pages is None else sorted(path for path in options.pages.rglob("*.htm*") if path.is_file())
    while True:
        yield soup(dice)
        if files:
            yield mutated(dice.choice(files).read_bytes()[:200_000], dice)


def _sanitized() -> None:
    """Starts this command again with a scanner that checks itself."""
    flags = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    with tempfile.TemporaryDirectory() as folder:
        made = build_scanner.build(Path(folder) / "_page_scan.abi3.so", flags)
        library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        env = {"LD_PRELOAD": library.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0", "SCANNER": str(made)}
        argv = [sys.executable, "-m", "scan_fuzz", *(arg for arg in sys.argv[1:] if arg != "--sanitize")]
        # Without its own allocator, Python's objects are checked too.
        sys.exit(subprocess.run(argv, env={**os.environ, **env, "PYTHONMALLOC": "malloc"}, check=False).returncode)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scan_fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--pages", type=Path, default=None)
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    if options.sanitize:
        _sanitized()
    if "SCANNER" in os.environ:
        page_scan._scan = load(Path(os.environ["SCANNER"])).scan
    if page_scan.reader_name() != "scanner":
        sys.exit("There is no scanner: run python tools/build_scanner.py")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    counts: Counter[str] = Counter()
    until = time.monotonic() + options.seconds
    for page in _pages(options, random.Random(seed)):
        if difference(page) is not None:
            sys.exit(difference(smallest(page)))
        found = page_scan.scan(page, "curtsy")
        counts[found if isinstance(found, str) else "scanned"] += 1
        if time.monotonic() > until:
            break
    print(f"{counts.total():,} pages, no difference; {dict(counts.most_common())}")


if __name__ == "__main__":
    main()
