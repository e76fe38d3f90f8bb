"""A deterministic site for benchmarks: organisation pages of about 20 KB with 40 links, as files for nginx.

Every page of a host is reachable from its home page: page i links to its children 3i+1, 3i+2, 3i+3. Cross-host links
carry the port, so a site belongs to one port.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

LINKS_PER_PAGE = 40
CROSS_HOST_LINKS = 2
#: raised when the pages change, so that a kept site is made again
LAYOUT = 1
SECTIONS = ("about", "people", "projects", "news", "research", "services", "publications", "contact")
_WORDS = (
    "the of and to in for with on by from as at our their this each more new open public local small large early late "
    "region council river harbour garden school library market bridge station museum forest valley island coast town "
    "project programme report survey review method result measure record archive letter meeting budget grant season "
    "water energy transport housing health language history music weather farming fishing timber repair training "
    "member partner volunteer teacher engineer nurse farmer visitor student neighbour family committee office team "
    "works opens joins keeps builds plans reports supports offers begins ends grows shares brings explains records "
    "is are was were has had will can may should often together nearby yearly weekly again once still since until "
    "careful practical shared regular simple steady independent regional common useful quiet several many most few"
)
WORDS = tuple(_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a site stands and what it is called."""

    folder: Path
    hosts: int
    pages: int
    port: int
    domain: str = "bench.test"

    def host(self, number: int) -> str:
        return f"org-{number % self.hosts:04d}.{self.domain}"

    def origin(self, number: int) -> str:
        return f"http://{self.host(number)}:{self.port}"

    @property
    def seeds(self) -> list[str]:
        return [f"{self.origin(number)}/" for number in range(self.hosts)]

    @property
    def total_pages(self) -> int:
        return self.hosts * self.pages

    @property
    def resolve_rule(self) -> str:
        return f"*.{self.domain}=127.0.0.1:{self.port}"


def path_of(page: int) -> str:
    """The path of a page; page 0 is the home page."""
    return "/" if page == 0 else f"/{SECTIONS[page % len(SECTIONS)]}/{WORDS[20 + page % 90]}-{page:04d}.html"


def links_of(site: Site, host: int, page: int, rng: random.Random) -> list[str]:
    """The 40 hrefs of a page in the order of the page: navigation, text, related, elsewhere, footer."""
    navigation = ["/"] + [path_of(n) for n in range(1, 8) if n < site.pages]
    children = [path_of(n) for n in range(3 * page + 1, 3 * page + 4) if n < site.pages]
    elsewhere = [
        site.origin(rng.randrange(site.hosts)) + path_of(rng.randrange(min(8, site.pages)))
        for _ in range(CROSS_HOST_LINKS)
    ]
    footer = [site.origin(host) + path_of(n % site.pages) for n in (8, 9, 10)]
    missing = LINKS_PER_PAGE - len(navigation) - len(children) - len(elsewhere) - len(footer)
    related = [_as_written(path_of(rng.randrange(site.pages)), page, rng) for _ in range(missing)]
    return navigation + children + related + elsewhere + footer


def _as_written(path: str, page: int, rng: random.Random) -> str:
    """One link in five is relative to the page's folder, as editors of real sites write them."""
    if path == "/" or rng.random() > 0.2:
        return path
    return path[1:] if page == 0 else ".." + path


def paragraphs(rng: random.Random, count: int = 400) -> list[str]:
    """Plain prose of two to four sentences, shared by all pages of a site."""
    return [" ".join(_sentence(rng) for _ in range(rng.randint(2, 4))) for _ in range(count)]


def _sentence(rng: random.Random) -> str:
    text = " ".join(rng.choices(WORDS, k=rng.randint(8, 16)))
    return text[0].upper() + text[1:] + "."


HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<meta name="description" content="{description}">
<meta property="og:title" content="{title}">
<meta property="og:type" content="website">
<link rel="stylesheet" href="/assets/site.css">
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<style>{style}</style>
<script>window.settings = {{"page": {page}, "host": "{host}", "theme": "plain", "search": false}};</script>
</head>
<body class="page page-{page}">
"""
STYLE = "".join(
    f".{block}-{part}{{margin:{n % 4}rem auto;padding:.{n}rem;color:#2{n % 10}3{n % 7}4a;line-height:1.{n}}}"
    for n, (block, part) in enumerate((b, p) for b in ("nav", "card", "text", "foot") for p in ("list", "item", "head"))
)


def render(site: Site, host: int, page: int, prose: list[str]) -> str:
    """One page, always the same for the same site, host and number."""
    rng = random.Random(host * 1_000_003 + page)
    title = f"{_sentence(rng)[:48].strip('.')} | Organisation {host:04d}"
    hrefs = links_of(site, host, page, rng)
    parts = [
        HEAD.format(
            title=title,
            description=prose[rng.randrange(len(prose))][:150],
            style=STYLE,
            page=page,
            host=site.host(host),
        )
    ]
    parts.append('<header class="nav-head"><nav aria-label="Main"><ul class="nav-list">\n')
    parts += [f'<li class="nav-item"><a href="{href}">{_anchor(rng)}</a></li>\n' for href in hrefs[:8]]
    parts.append(f'</ul></nav></header>\n<main id="content"><article class="text-head"><h1>{title}</h1>\n')
    parts += [_block(rng, number, href, prose) for number, href in enumerate(hrefs[8:-5])]
    parts.append('</article></main>\n<footer class="foot-head"><ul class="foot-list">\n')
    parts += [
        f'<li class="foot-item"><a href="{href}" title="{_anchor(rng)}">{_anchor(rng)}</a></li>\n'
        for href in hrefs[-5:]
    ]
    parts.append(
        f"</ul><p>Organisation {host:04d}, page {page}. All texts may be shared.</p></footer>\n</body>\n</html>\n"
    )
    return "".join(parts)


def _anchor(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=3)).capitalize()


def _block(rng: random.Random, number: int, href: str, prose: list[str]) -> str:
    """A link with the text around it; every fourth stands in a card with an image and a date."""
    first, second, third = (
        prose[rng.randrange(len(prose))],
        prose[rng.randrange(len(prose))],
        prose[rng.randrange(len(prose))],
    )
    link = f'<a class="text-item" href="{href}">{_anchor(rng)}</a>'
    if number % 4:
        return f'<p class="text-list">{first} {link} <em>{third[:40]}</em> {second}</p>\n'
    return (
        f'<section class="card-list" data-number="{number}"><h2 class="card-head">{_anchor(rng)}</h2>\n'
        f'<img src="/assets/{number:02d}.jpg" alt="{_anchor(rng)}" width="320" height="200" loading="lazy">\n'
        f'<time datetime="2024-0{number % 9 + 1}-12">12.{number % 9 + 1}.2024</time> {link}\n'
        f"<p>{first}</p><ul><li>{second[:90]}</li><li>{third[:90]}</li></ul></section>\n"
    )


def write(folder: Path, *, hosts: int, pages: int, port: int) -> Site:
    """The site in a folder, one sub-folder per host; made once and kept until its parameters change."""
    site = Site(folder=folder, hosts=hosts, pages=pages, port=port)
    stamp, label = folder / "made", f"layout {LAYOUT}: {hosts} hosts, {pages} pages, port {port}\n"
    if stamp.exists() and stamp.read_text() == label:
        return site
    stamp.unlink(missing_ok=True)
    write_into(site)
    stamp.write_text(label)
    return site


def write_into(site: Site, times: int = 1) -> None:
    """The pages of a site; `times`: how many times as much text they have."""
    rng = random.Random(7)
    prose = [" ".join(texts) for texts in zip(*(paragraphs(rng) for _ in range(times)), strict=True)]
    for host in range(site.hosts):
        _write_host(site, host, prose)


def _write_host(site: Site, host: int, prose: list[str]) -> None:
    root = site.folder / site.host(host)
    for section in SECTIONS:
        (root / section).mkdir(parents=True, exist_ok=True)
    (root / "robots.txt").write_text("User-agent: *\nDisallow:\n")
    for page in range(site.pages):
        path = path_of(page)
        file = root / "index.html" if path == "/" else root / path[1:]
        file.write_text(render(site, host, page, prose))
