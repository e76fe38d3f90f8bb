"""A small site of sayings, shaped like those that people learn to scrape with: pages of quotes, authors, a login."""

from __future__ import annotations

import json
from collections import Counter
from urllib.parse import parse_qs, urlsplit

from small_site import Answer, Asked, Say, SmallSite, linking

QUOTES = [
    ("A closed gate asks no questions.", "Ada Brook", ["gates", "calm"]),
    ("Who counts geese at night counts some twice.", "Bo Finch", ["geese", "night"]),
    ("The second bell is the honest one.", "Ada Brook", ["bells"]),
    ("A map is a promise about weather.", "Cy Marsh", ["maps", "weather"]),
    ("Rain keeps better time than clocks.", "Bo Finch", ["weather", "time"]),
    ("No ladder ever missed its first rung.", "Cy Marsh", ["ladders"]),
]
PER_PAGE = 2
HTML, XML, CSV, JSON = (
    (("Content-Type", kind),) for kind in ("text/html; charset=utf-8", "text/xml", "text/csv", "application/json")
)


def slug(author: str) -> str:
    return author.lower().replace(" ", "-")


def _quotes(number: int) -> Say:
    shown = QUOTES[(number - 1) * PER_PAGE : number * PER_PAGE]
    quotes = "".join(
        f'<div class="quote"><span class="text">{text}</span><small class="author">{author}</small>'
        f'<a class="about" href="/author/{slug(author)}">about</a>'
        f"{''.join(f'<a class=tag>{tag}</a>' for tag in tags)}</div>"
        for text, author, tags in shown
    )
    more = number * PER_PAGE < len(QUOTES)
    following = f'<li class="next"><a href="/page/{number + 1}">Next</a></li>' if more else ""
    return Say(f"<!doctype html><title>Page {number}</title>{quotes}{following}".encode(), headers=HTML)


def _author(name: str) -> Say:
    said = f'<h3 class="name">{name}</h3><p class="born">Born in {1900 + len(name)}</p><a href="/page/1">back</a>'
    return Say(f"<!doctype html><title>{name}</title>{said}".encode(), headers=HTML)


def _item(number: int) -> Say:
    links = f'<a href="/Items/{number + 1}">next</a>' if number < 4 else '<a href="/">home</a>'
    fields = f'<input id="sid" value="{number}"><div id="name">Thing {number}</div><div id="description">Blue</div>'
    return Say(f"<!doctype html><title>Thing {number}</title>{fields}{links}".encode(), headers=HTML)


def _echo(asked: Asked) -> Say:
    """What the site was told."""
    names = ("referer", "cookie", "x-word", "content-type")
    heard = {name: asked.headers.get(name) for name in names}
    return Say(json.dumps({**heard, "method": asked.method, "body": asked.body.decode()}).encode(), headers=JSON)


def _session(asked: Asked) -> Say:
    who = parse_qs(urlsplit(asked.path).query)["who"][0]
    return Say(b"ok", headers=(*HTML, ("Set-Cookie", f"who={who}; Path=/")))


def _login(asked: Asked) -> Say:
    if asked.method == "GET":
        form = '<form method="post" action="/login"><input type="hidden" name="token" value="t-42">'
        return Say(f'<!doctype html><title>Login</title>{form}<input name="user"></form>'.encode(), headers=HTML)
    given = parse_qs(asked.body.decode())
    if given != {"token": ["t-42"], "user": ["ada"]}:
        return Say(b"wrong", 403, HTML)
    return Say(b"", 302, (*HTML, ("Location", "/members/1"), ("Set-Cookie", "sid=s-7; Path=/")))


def _member(number: int) -> Answer:
    def answer(asked: Asked) -> Say:
        if asked.headers.get("cookie") != "sid=s-7":
            return Say(b"<!doctype html><title>Who are you?</title>", headers=HTML)
        return linking(*([f"/members/{number + 1}"] if number < 6 else []), title=f"Member {number}")

    return answer


def _every_other_time() -> Answer:
    times: Counter[str] = Counter()

    def answer(asked: Asked) -> Say:
        times[asked.path] += 1
        return Say(b"away", 503, HTML) if times[asked.path] % 2 else linking(title="Here again")

    return answer


def quotes_site() -> SmallSite:
    authors = sorted({author for _, author, _ in QUOTES})
    pages: dict[str, Answer] = {f"/page/{n}": _quotes(n) for n in range(1, len(QUOTES) // PER_PAGE + 1)}
    pages |= {f"/author/{slug(name)}": _author(name) for name in authors}
    pages |= {f"/Items/{n}": _item(n) for n in range(1, 5)}
    pages |= {f"/members/{n}": _member(n) for n in range(1, 7)}
    pages |= {f"/deep/{n}": linking(f"/deep/{n + 1}", "/deep/0", title=f"Deep {n}") for n in range(6)}
    pages |= {f"/order/{n}": linking(title=f"Order {n}") for n in range(9)}
    pages |= dict.fromkeys(("/echo", "/echo?a", "/echo?b", "/echo?c", "/form", "/json"), _echo)
    pages |= {f"/session?who={who}": _session for who in "abc"}
    site = SmallSite(pages)
    pages["/"] = linking("/Items/1", "/page/1", "/elsewhere", title="Home")
    pages["/robots.txt"] = Say(b"User-agent: *\nDisallow: /forbidden\n", headers=HTML)
    pages["/forbidden"] = linking(title="Forbidden")
    pages["/self"] = linking("/self", "/self#part", title="Self")
    pages["/order"] = linking(title="Order")
    pages["/moved"] = Say(b"", 301, (*HTML, ("Location", "/page/1")))
    pages["/flapping"] = _every_other_time()
    pages["/login"] = _login
    pages["/feed.xml"] = Say(_feed(), headers=XML)
    pages["/things.csv"] = Say(b"url,name,description\n/1,Bell,Brass\n/2,Gate,Oak\n/3,Map,Old\n", headers=CSV)
    pages["/sitemap.xml"] = lambda asked: _sitemap(asked, "sitemapindex", "sitemap", ["/sitemap-1.xml"])
    pages["/sitemap-1.xml"] = lambda asked: _sitemap(
        asked, "urlset", "url", ["/page/1", "/author/bo-finch", "/Items/2"]
    )
    return site


def _feed() -> bytes:
    items = "".join(f"<item><url>/page/{n}</url><name>Page {n}</name></item>" for n in range(1, 4))
    return f'<?xml version="1.0"?><rss><channel>{items}</channel></rss>'.encode()


def _sitemap(asked: Asked, kind: str, entry: str, paths: list[str]) -> Say:
    lines = "".join(f"<{entry}><loc>http://{asked.host}{path}</loc></{entry}>" for path in paths)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return Say(f'<?xml version="1.0"?><{kind} xmlns="{space}">{lines}</{kind}>'.encode(), headers=XML)
