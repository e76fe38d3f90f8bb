"""Hosts whose link space is large, endless or odd: sitemaps, traps, duplicates, strange names and URLs."""

from __future__ import annotations

import gzip
import hashlib
import itertools
from collections.abc import Iterable

from curtsy.tinyweb.answers import Answer, Handler, Pages, Request, html, reply, text
from curtsy.tinyweb.faults.registry import fault, host_of, ordinary, page

SITEMAP_URLS = 50_000
MANY_LINKS = 10_000
XML = "application/xml"
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def _urlset(urls: Iterable[str]) -> bytes:
    lines = "".join(f"<url><loc>{url}</loc><lastmod>2024-05-01</lastmod></url>\n" for url in urls)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_NAMESPACE}>\n{lines}</urlset>\n'.encode()


def _index(urls: Iterable[str]) -> bytes:
    lines = "".join(f"<sitemap><loc>{url}</loc></sitemap>\n" for url in urls)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex {_NAMESPACE}>\n{lines}</sitemapindex>\n'.encode()


def _robots(host: str, *paths: str) -> str:
    return "User-agent: *\nAllow: /\n" + "".join(f"Sitemap: http://{host}{path}\n" for path in paths)


@fault(
    "sitemap-index",
    "robots.txt names a sitemap index of two sitemaps, one in gzip; their pages are linked nowhere else",
    "/mapped/1 to /mapped/6 are done",
    ends={"/": "done", "/mapped/1": "done", "/mapped/6": "done"},
)
def _sitemap_index() -> Pages:
    at = f"http://{host_of('sitemap-index')}"
    mapped: Pages = {f"/mapped/{number}": page(f"Mapped {number}") for number in range(1, 7)}
    packed = gzip.compress(_urlset(f"{at}/mapped/{number}" for number in range(4, 7)), mtime=0)
    return (
        ordinary(robots=_robots(host_of("sitemap-index"), "/sitemap_index.xml"))
        | mapped
        | {
            "/sitemap_index.xml": reply(200, _index([f"{at}/maps/plain.xml", f"{at}/maps/packed.xml.gz"]), XML),
            "/maps/plain.xml": reply(200, _urlset(f"{at}/mapped/{number}" for number in range(1, 4)), XML),
            "/maps/packed.xml.gz": reply(200, packed, "application/gzip"),
        }
    )


@fault(
    "sitemap-gzip",
    "a sitemap in gzip by name, by Content-Encoding, and by both",
    "decided by content: /mapped/1 to /mapped/3 are done",
    ends={"/": "done", "/mapped/1": "done", "/mapped/2": "done", "/mapped/3": "done"},
)
def _sitemap_gzip() -> Pages:
    host = host_of("sitemap-gzip")
    maps = [gzip.compress(_urlset([f"http://{host}/mapped/{number}"]), mtime=0) for number in (1, 2, 3)]
    encoded = (("Content-Encoding", "gzip"),)
    return ordinary(robots=_robots(host, "/1.xml.gz", "/2.xml", "/3.xml.gz")) | {
        "/1.xml.gz": reply(200, maps[0], "application/octet-stream"),
        "/2.xml": reply(200, maps[1], XML, encoded),
        "/3.xml.gz": reply(200, gzip.compress(maps[2], mtime=0), "application/x-gzip", encoded),
        **{f"/mapped/{number}": page(f"Mapped {number}") for number in (1, 2, 3)},
    }


@fault(
    "sitemap-50000",
    "a sitemap of 50,000 URLs, every one of them a page",
    "pages up to max_urls_per_host are done, the rest is left for its budget; memory bounded",
    ends={"/": "done"},
)
def _sitemap_large() -> Pages:
    host = host_of("sitemap-50000")
    urls = (f"http://{host}/entry/{number:05d}" for number in range(SITEMAP_URLS))
    return ordinary(robots=_robots(host, "/sitemap.xml")) | {
        "/sitemap.xml": reply(200, _urlset(urls), XML),
        "*": _numbered("/entry/", SITEMAP_URLS),
    }


@fault(
    "sitemap-broken",
    "sitemaps that are cut off, that name themselves, that are HTML, that are text, and a feed",
    "what can be read is used: /mapped/1 to /mapped/3 are done; no loop",
    ends={"/": "done", "/mapped/1": "done", "/mapped/2": "done"},
)
def _sitemap_broken() -> Pages:
    host = host_of("sitemap-broken")
    at = f"http://{host}"
    cut = _urlset([f"{at}/mapped/1", f"{at}/mapped/9"])
    feed = f"<?xml version='1.0'?><rss version='2.0'><channel><item><link>{at}/mapped/3</link></item></channel></rss>"
    names = ("/cut.xml", "/self.xml", "/page.xml", "/list.txt", "/feed.xml", "/none.xml")
    return ordinary(robots=_robots(host, *names)) | {
        "/cut.xml": reply(200, cut[: cut.index(b"/mapped/9")], XML),
        "/self.xml": reply(200, _index([f"{at}/self.xml"]), XML),
        "/page.xml": page("Not a sitemap"),
        "/list.txt": text(f"{at}/mapped/2\nnot a url\n"),
        "/feed.xml": reply(200, feed.encode(), "application/rss+xml"),
        **{f"/mapped/{number}": page(f"Mapped {number}") for number in (1, 2, 3)},
    }


def _numbered(prefix: str, count: int) -> Handler:
    def answer(request: Request) -> Answer:
        number = request.target.removeprefix(prefix)
        if request.target.startswith(prefix) and number.isdigit() and int(number) < count:
            return page(f"Number {int(number)}", "/")
        return text("Not found.\n", 404)

    return answer


@fault(
    "trap-calendar",
    "a calendar whose months go on for ever, in both directions",
    "ends by max_urls_per_host",
    ends={"/": "done"},
)
def _calendar() -> Pages:
    def month(request: Request) -> Answer:
        _, _, value = request.target.partition("?month=")
        digits = value.replace("-", "")
        if not (request.target.startswith("/calendar?month=") and digits.isdigit() and len(digits) <= 9):
            return text("Not found.\n", 404)
        at = int(digits[:-2] or "0") * 12 + int(digits[-2:]) - 1
        others = [f"/calendar?month={other // 12:04d}-{other % 12 + 1:02d}" for other in (at + 1, max(at - 1, 0))]
        return page(f"Month {value}", *others)

    return ordinary("/calendar?month=2024-05") | {"*": month}


@fault(
    "trap-session",
    "every link carries a new session id: ;jsessionid=, PHPSESSID=, sid=",
    "session ids are removed: six pages, each requested once",
    ends={"/": "done", "/room/1": "done", "/room/6": "done"},
)
def _session() -> Pages:
    numbers = itertools.count()

    def session() -> str:
        return hashlib.md5(str(next(numbers)).encode(), usedforsecurity=False).hexdigest()

    def room(request: Request) -> Answer:
        name = request.target.partition(";")[0].partition("?")[0]
        if not name.startswith("/room/") or name.removeprefix("/room/") not in "123456":
            return text("Not found.\n", 404)
        forms = ("/room/{n};jsessionid={s}", "/room/{n}?PHPSESSID={s}", "/room/{n}?sid={s}")
        links = [forms[n % 3].format(n=n, s=session()) for n in range(1, 7)]
        return page(name, *links)

    return ordinary("/room/1") | {"*": room}


@fault(
    "trap-segments",
    "every address answers 200 with a relative link one level deeper: /a/a/a/...",
    "ends by the limit on repeated segments",
    ends={"/": "done"},
)
def _segments() -> Pages:
    return ordinary("/deep/") | {"*": page("Deeper", "deep/", "deep/and/", "../deep/")}


@fault(
    "duplicates",
    "/a, /b and /c have the same bytes; /a also by upper case in %7E, default port, fragment and dot segments",
    "spellings of one URL are requested once; equal bodies are done as pages of their own",
    ends={"/": "done", "/a": "done", "/b": "done", "/c": "done", "/~x": "done"},
)
def _duplicates() -> Pages:
    same = page("The same everywhere")
    host = host_of("duplicates")
    spelled = (
        "/a#top", "/a#end", f"http://{host}:80/a", "/./a", "/b/../a", f"HTTP://{host.upper()}/a", "/b", "/c", "/~x",
        "/c?",
    )  # fmt: skip
    return ordinary(*spelled) | {"/a": same, "/b": same, "/c": same, "/c?": same, "/~x": same}


@fault(
    "links-10000",
    f"/list has {MANY_LINKS:,} links, every one of them a page",
    "pages up to max_urls_per_host are done",
    ends={"/": "done", "/list": "done"},
)
def _many_links() -> Pages:
    links = "\n".join(f'<a href="/item/{number}">{number}</a>' for number in range(MANY_LINKS))
    listed = html(f"<!doctype html><title>List</title>\n{links}\n")
    return ordinary("/list") | {"/list": listed, "*": _numbered("/item/", MANY_LINKS)}


def _absurd_links() -> list[str]:
    host = host_of("absurd-urls")
    return [
        "", "#", "?", "//", "///", "http:", "http://", "http:///path", "http:relative", "javascript:void(0)",
        "mailto:a@tinyweb.test", "tel:+4755010000", "data:text/html,x", "about:blank", "blob:x", "http://[::1",
        f"http://[user@]{host}/", f"http://user:secret@{host}/with-user", f"http://{host}:0/", f"http://{host}:99999/",
        f"http://{host}:80/port-80", f"https://{host}:notaport/", "/back\\slash", "\\\\evil\\path", "/sp ace",
        "/tab\there", "/new\nline", "  /padded  ", "/%zz", "/%", "/%00", "/a%2Fb", "/ünï/çødé", "/%C3%BC", "/%FC",
        "/../../../../up", "/a/./b/../c", "/;params", "/semi;colon=1", "/q?a=1&a=2&&", "/q?=", "/q?a=%20+%2B",
        "/emoji/😀", "/rtl/\u202etxt", "/null\0byte", "/" + "long/" * 30, "/" + "x" * 2000, "/" + "y" * 3000,
        "/?" + "z" * 10_000, "/<script>", '/"quoted"', "/'single'", "/{braces}", "/|pipe|", "/^caret", "/`tick`",
        "http://1.2.3.4.5/", "http://0x7f.1/", "http://2130706433/", "http://localhost/", f"http://{host}./dot",
        f"//{host}/scheme-relative", f"HTTP://{host.upper()}/UPPER", "/case", "/CASE", "/Case/",
    ]  # fmt: skip


@fault(
    "absurd-urls",
    "one page with sixty hrefs that are empty, endless, malformed, private, in other schemes or oddly spelled",
    "no crash; only http URLs of this host are requested, each in its WHATWG form",
    ends={"/": "done", "/case": "done", "/CASE": "done", "/port-80": "done"},
)
def _absurd() -> Pages:
    def escaped(link: str) -> str:
        return link.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")

    anchors = "\n".join(f'<a href="{escaped(link)}">x</a>' for link in _absurd_links())
    return ordinary("/zoo") | {
        "/zoo": html(f"<!doctype html><title>Zoo</title>\n{anchors}\n"),
        "*": page("An address that somebody made up"),
    }


@fault(
    "xn--bcher-kva",
    "bücher.tinyweb.test: links to itself in Unicode, in punycode, in upper case and percent-encoded",
    "one host, six pages, all done",
    seeds=("http://bücher.tinyweb.test/",),
    ends={"/": "done", "/eins": "done", "/zwei": "done", "/drei": "done", "/stra%C3%9Fe": "done"},
)
def _unicode() -> Pages:
    links = (
        "http://bücher.tinyweb.test/eins",
        "http://b%C3%BCcher.tinyweb.test/zwei",
        "http://XN--BCHER-KVA.tinyweb.test/drei",
        "/straße",
        "/stra%C3%9Fe",
    )
    paths = ("/eins", "/zwei", "/drei", "/stra%C3%9Fe")
    return ordinary(*links) | {path: page(f"Seite {path}") for path in paths}


@fault(
    "xn--strae-oqa",
    "straße.tinyweb.test, reached by its punycode seed: ß is kept, not turned into ss",
    "one host, all pages done",
    ends={"/": "done", "/innen": "done"},
)
def _sharp_s() -> Pages:
    return ordinary("http://straße.tinyweb.test/innen") | {"/innen": page("Innen")}


@fault(
    "xn--wgv71a",
    "日本.tinyweb.test, reached by its Unicode seed",
    "one host, all pages done",
    seeds=("http://日本.tinyweb.test/",),
    ends={"/": "done", "/%E4%BA%AC%E9%83%BD": "done"},
)
def _japan() -> Pages:
    return ordinary("/京都") | {"/%E4%BA%AC%E9%83%BD": page("京都")}
