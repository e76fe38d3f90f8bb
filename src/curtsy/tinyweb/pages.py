"""The sites of the organizations: the content of each page, rendered on first request."""

from __future__ import annotations

import json
import random
import zlib
from dataclasses import dataclass

from curtsy.tinyweb import documents, facts, words
from curtsy.tinyweb.answers import NOT_FOUND, Answer, tagged, text
from curtsy.tinyweb.facts import Kind, Organization

SECTIONS = ("/", "/about", "/contact", "/people", "/projects", "/claims", "/news")
THIN_PAGES = ("/", "/about", "/contact")
#: linked from every home page and disallowed by robots.txt
INTERNAL = "/internal/"
ROBOTS = "User-agent: *\nDisallow: /internal/\nSitemap: http://{host}/sitemap.xml\n"

#: paragraphs from which the pages of a site choose
POOL = 64

_STYLE = "body{font:1rem/1.5 serif;max-width:44rem;margin:auto}nav a{margin-right:1em}footer{color:#777}"

_RENDERER = """
function draw(page) {
  const root = document.getElementById("root");
  const add = (tag, text, href) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (href) element.href = href;
    root.appendChild(element);
  };
  add("h1", page.heading);
  page.paragraphs.forEach((paragraph) => add("p", paragraph));
  page.links.forEach(([href, label]) => add("a", label, href));
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large a site's pages are."""

    pages: int = 30
    #: approximate kilobytes of HTML per page; None: not padded
    page_kb: float | None = None
    #: exact number of links per page; None: about 19
    links: int | None = None

    @property
    def plain(self) -> bool:
        """Sites for benchmarks: every page has its links in the HTML and nothing is disallowed."""
        return self.page_kb is not None or self.links is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a page, before rendering."""

    title: str
    heading: str
    paragraphs: tuple[str, ...]


class OrgSite:
    """The site of one organization."""

    def __init__(self, host: str, shape: Shape, seed: int = 1) -> None:
        self.host = host
        self.shape = shape
        self.seed = seed
        self.org = facts.organization(host, seed, plain=shape.plain)
        #: the path of its document, if it has one
        self.document = facts.DOCUMENTS.get(self.org.kind)
        self.paths = _paths(self.org, shape)
        self._index = {path: number for number, path in enumerate(self.paths)}
        # A crawl requests each page once, so rendering determines its cost: shared parts are made here.
        dice = random.Random(f"{seed}:{host}:chatter")
        self._pool = [*_chatter(dice, POOL), *(_decoy(dice) for _ in range(POOL))]
        self._anchors = [f'<a href="{path}">{_label(path)}</a> ' for path in self.paths]
        self._nav = "".join(self._anchors[self._index[path]] for path in self._sections())
        self._filler: str | None = None

    def answer(self, target: str) -> Answer:
        """Return the answer of a path; 404 if there is no page."""
        if target == self.document:
            body, content_type = documents.body(self.org, self._paragraphs)
            return tagged(body, content_type)
        if target in self._index:
            # These determine the page, and are cheaper to hash than its bytes.
            version = f"{self.seed} {self.host} {target} {self.shape}"
            return tagged(self.html(target).encode(), version=version)
        if target == "/robots.txt":
            return text(self.robots())
        if target == "/sitemap.xml" and not self.shape.plain:
            return tagged(self.sitemap().encode(), "application/xml")
        if target.startswith(INTERNAL) and not self.shape.plain:
            return tagged(b"<!doctype html><title>Drafts</title><p>Not for crawlers.</p>")
        if self.org.kind is Kind.FETCHED:
            return self._fetched(target)
        return NOT_FOUND

    def robots(self) -> str:
        return "User-agent: *\nAllow: /\n" if self.shape.plain else ROBOTS.format(host=self.host)

    def sitemap(self) -> str:
        urls = "".join(f"<url><loc>http://{self.host}{path}</loc></url>\n" for path in self.paths)
        return f'<?xml version="1.0"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n'

    def html(self, path: str) -> str:
        content = self.content(path)
        if self.org.kind in (Kind.SCRIPT, Kind.FETCHED):
            return self._script_page(path, content)
        body = "\n".join(f"<p>{paragraph}</p>" for paragraph in content.paragraphs)
        top = f"{self._head(content, path)}<body>\n<nav>{self._nav}</nav>\n<main>\n<h1>{content.heading}</h1>\n{body}\n"
        end = f"</main>\n<aside>{self._ring(path)}</aside>\n{self._footer()}</body></html>\n"
        return top + self._padding(path, len(top) + len(end)) + end

    def content(self, path: str) -> Content:
        """Return the content of the page at `path`."""
        if self.org.kind is Kind.THIN:
            return _thin(self.org, path)
        number = zlib.crc32(path.encode())
        chatter = [self._pool[(number + step * 7) % POOL] for step in range(4)]
        paragraphs = [*_stated(self.org, path), self._pool[POOL + number % POOL], *chatter]
        heading = _heading(self.org, path)
        return Content(title=f"{heading} | {self.org.name}", heading=heading, paragraphs=tuple(paragraphs))

    def _head(self, content: Content, path: str) -> str:
        data = f'<script type="application/ld+json">{_jsonld(self.org)}</script>\n' if self._has_data(path) else ""
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{content.title}</title>\n'
            f"<style>{_STYLE}</style>\n{data}</head>\n"
        )

    def _has_data(self, path: str) -> bool:
        return self.org.kind is Kind.JSONLD and path in ("/", "/about")

    def _paragraphs(self, count: int) -> list[str]:
        """Text without facts, and a decoy, for the document."""
        dice = random.Random(f"{self.seed}:{self.host}:document:{count}")
        return [dice.choice(self._pool[POOL:]), *dice.sample(self._pool[:POOL], count - 1)]

    def _sections(self) -> list[str]:
        return [path for path in (*SECTIONS, self.document) if path in self._index]

    def _ring(self, path: str) -> str:
        """Links to the next pages of the ring, so that every page is reached from any other."""
        internal = f'<a href="{INTERNAL}drafts">Drafts</a>' if path == "/" and not self.shape.plain else ""
        return "".join(self._following(self._anchors, path)) + internal

    def _following(self, ring: list[str], path: str) -> list[str]:
        count = max((self.shape.links if self.shape.links is not None else 19) - len(self._sections()), 1)
        start = self._index[path] + 1
        while len(ring) < start + count:
            ring = ring + ring
        return ring[start : start + count]

    def _footer(self) -> str:
        if self.org.kind is Kind.THIN:
            return "<footer>&copy; 2024</footer>\n"
        return (
            f"<footer>&copy; 1998&ndash;2024 {self.org.name}. Site by Pixel &amp; Daughters, Oslo, since 2003. "
            "Hosting: 0800 555 010.</footer>\n"
        )

    def _padding(self, path: str, so_far: int) -> str:
        if self.shape.page_kb is None:
            return ""
        missing = int(self.shape.page_kb * 1000) - so_far - 40
        if missing < 20:
            return ""
        if self._filler is None:
            dice = random.Random(f"{self.seed}:{self.host}:filler")
            self._filler = "\n".join(f"<p>{paragraph}</p>" for paragraph in _chatter(dice, missing // 180 + 40))
        # Each page starts at another place in the filler, so that no two pages have the same text.
        start = self._filler.index("<p>", (self._index[path] * 37) % 2000)
        return f"{self._filler[start : start + missing]}</p>\n<p>Page {self._index[path]}.</p>\n"

    def _script_page(self, path: str, content: Content) -> str:
        links = [[other, _label(other)] for other in [*self._sections(), *self._following(self.paths, path)]]
        data = json.dumps({"heading": content.heading, "paragraphs": content.paragraphs, "links": links})
        if self.org.kind is Kind.FETCHED:
            script = '<script src="/app.js"></script>'
        else:
            script = f"<script>{_RENDERER}draw({data.replace('</', '<' + chr(92) + '/')});</script>"
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{content.title}</title></head>\n'
            f'<body><div id="root"></div><noscript>This site needs JavaScript.</noscript>{script}</body></html>\n'
        )

    def _fetched(self, target: str) -> Answer:
        if target == "/app.js":
            load = 'fetch("/data" + location.pathname + ".json").then((r) => r.json()).then(draw);\n'
            return tagged((_RENDERER + load).encode(), "text/javascript")
        path = target.removeprefix("/data").removesuffix(".json")
        if not (target.startswith("/data/") and target.endswith(".json") and path in self._index):
            return NOT_FOUND
        content = self.content(path)
        links = [[other, _label(other)] for other in [*self._sections(), *self._following(self.paths, path)]]
        data = {"heading": content.heading, "paragraphs": content.paragraphs, "links": links}
        return tagged(json.dumps(data).encode(), "application/json")


def _paths(org: Organization, shape: Shape) -> list[str]:
    if org.kind is Kind.THIN:
        return list(THIN_PAGES)
    projects = [f"/projects/{project.slug}" for project in org.projects]
    document = facts.DOCUMENTS.get(org.kind)
    paths = [*SECTIONS, *([document] if document else []), *projects]
    paths += [f"/news/{number:04d}" for number in range(1, shape.pages - len(paths) + 1)]
    return paths[: max(shape.pages, 1)]


def _label(path: str) -> str:
    named = path.removeprefix("/files/").partition(".")[0]
    return named.strip("/").replace("/", " ").replace("-", " ").capitalize() or "Home"


def _heading(org: Organization, path: str) -> str:
    return org.name if path == "/" else _label(path)


def _stated(org: Organization, path: str) -> list[str]:
    """Return the sentences of a page that state facts; the places in facts.py quote them."""
    elsewhere = facts.IN_DOCUMENT.get(org.kind, ())
    in_data = ("founded_year", "contact.phone") if org.kind is Kind.JSONLD else ()

    def said(fact: str, sentence: str, otherwise: str = "") -> str:
        return otherwise if fact in elsewhere or fact in in_data else sentence

    match path:
        case "/":
            return [f"Welcome to {org.name}.", f"{facts.mission_sentence(org)}."]
        case "/about":
            founded = said("founded_year", f"{facts.founded_sentence(org)}.", "It began with a few neighbours.")
            headquarters = said("headquarters", f" {facts.headquarters_sentence(org)}.")
            return [founded + headquarters, f"{facts.mission_sentence(org)}."]
        case "/contact":
            phone = said("contact.phone", f"Telephone: {org.contact.phone}.", "We prefer letters and e-mail.")
            address = said("contact.address", f"Visit us: {org.contact.address}.", "Visitors are welcome.")
            return [f"Write to us: {org.contact.email}. {phone}", address]
        case "/people":
            return [f"{person.name}, {person.role}." for person in org.people]
        case "/projects":
            return [f"{project.name} has been running since {project.started_year}." for project in org.projects]
        case "/claims":
            if "sustainability_claims" in elsewhere:
                return ["What we achieved is in our sustainability report."]
            return [f"{claim.text}." for claim in org.sustainability_claims]
    for project in org.projects:
        if path == f"/projects/{project.slug}":
            return [f"{project.name} is a project of {org.name}, running since {project.started_year}."]
    return [f"A note from {org.name}."]


def _thin(org: Organization, path: str) -> Content:
    said = {"/": f"{org.name}. More soon.", "/about": "This page is being written.", "/contact": org.contact.email}
    return Content(title=org.name, heading=_heading(org, path), paragraphs=(said[path],))


def _decoy(dice: random.Random) -> str:
    city = dice.choice(words.CITIES)[0]
    return dice.choice(words.DECOYS).format(year=dice.randint(1880, 1999), city=city)


def _chatter(dice: random.Random, count: int) -> list[str]:
    return [" ".join(dice.sample(words.SENTENCES, 3)) for _ in range(count)]


def _jsonld(org: Organization) -> str:
    city, _, country = (org.headquarters or "").partition(", ")
    street = (org.contact.address or "").partition(",")[0]
    return json.dumps(
        {
            "@context": "https://schema.org",
            "@type": "Organization",
            "name": org.name,
            "url": f"http://{org.host}/",
            "foundingDate": str(org.founded_year),
            "address": {
                "@type": "PostalAddress",
                "streetAddress": street,
                "addressLocality": city,
                "addressCountry": country,
            },
            "email": org.contact.email,
            "telephone": org.contact.phone,
        },
        ensure_ascii=False,
    )
