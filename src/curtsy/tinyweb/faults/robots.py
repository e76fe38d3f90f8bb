"""Hosts with special robots.txt files."""

from __future__ import annotations

from curtsy.tinyweb.answers import After, Answer, Pages, Request, Script, html, redirect, reply, text
from curtsy.tinyweb.faults.registry import fault, host_of, ordinary, page

#: RFC 9309 requires a crawler to parse at least this much
PARSE_LIMIT_BYTES = 500 * 1024


@fault(
    "robots-allow",
    "robots.txt shuts out everyone but allows curtsy in a group of its own",
    "all pages are done",
    ends={"/": "done", "/one": "done"},
)
def _allow() -> Pages:
    return ordinary(robots="User-agent: *\nDisallow: /\n\nUser-agent: curtsy\nAllow: /\n")


@fault(
    "robots-disallow",
    "robots.txt forbids /private/ to everyone and /nocurtsy to curtsy's group, which makes the other group void",
    "/nocurtsy is skipped as robots; /private/ is allowed, because only the most specific group counts",
    forbidden=("/nocurtsy",),
    ends={"/nocurtsy": "skipped robots", "/private/a": "done", "/one": "done"},
)
def _disallow() -> Pages:
    robots = "User-agent: *\nDisallow: /private/\n\nUser-agent: Curtsy\nDisallow: /nocurtsy\n"
    return ordinary("/private/a", "/nocurtsy", robots=robots) | {
        "/private/a": page("Allowed to curtsy"),
        "/nocurtsy": page("Forbidden to curtsy"),
    }


@fault(
    "robots-disallow-all",
    "robots.txt forbids everything",
    "only robots.txt is requested; the seed is skipped as robots",
    forbidden=("/",),
    ends={"/": "skipped robots"},
)
def _disallow_all() -> Pages:
    return ordinary(robots="User-agent: *\nDisallow: /\n")


@fault(
    "robots-longest",
    "an Allow that is longer than the Disallow wins; of equal length, Allow wins",
    "/shop/open and /tie are done, /shop/closed is skipped as robots",
    forbidden=("/shop",),
    allowed=("/shop/open",),
    ends={"/shop/open": "done", "/shop/closed": "skipped robots", "/tie": "done"},
)
def _longest() -> Pages:
    robots = "User-agent: *\nDisallow: /shop\nAllow: /shop/open\nDisallow: /tie\nAllow: /tie\n"
    return ordinary("/shop/open", "/shop/closed", "/tie", robots=robots) | {
        "/shop/open": page("Open"),
        "/shop/closed": page("Closed"),
        "/tie": page("Tie"),
    }


@fault(
    "robots-wildcard",
    "rules with * and $: Disallow: /*.pdf$ and /*?print=",
    "/a.pdf and /one?print=1 are skipped as robots, /a.pdf?x=1 is done",
    forbidden=("/one?print=", "/a.pdf"),
    allowed=("/a.pdf?x=1",),
    ends={"/a.pdf": "skipped robots", "/one?print=1": "skipped robots", "/a.pdf?x=1": "done"},
)
def _wildcard() -> Pages:
    robots = "User-agent: *\nDisallow: /*.pdf$\nDisallow: /*?print=\n"
    return ordinary("/a.pdf", "/a.pdf?x=1", "/one?print=1", robots=robots) | {
        "/a.pdf": page("A PDF by name"),
        "/a.pdf?x=1": page("Not at the end"),
        "/one?print=1": page("Print"),
    }


@fault(
    "robots-crawl-delay",
    "Crawl-delay: 2",
    "requests start at least 2 s apart",
    crawl_delay_s=2.0,
    ends={"/": "done", "/one": "done"},
)
def _crawl_delay() -> Pages:
    return ordinary(robots="User-agent: *\nCrawl-delay: 2\n")


@fault("robots-404", "there is no robots.txt", "all pages are done", ends={"/": "done", "/one": "done"})
def _missing() -> Pages:
    return ordinary(robots=None)


@fault(
    "robots-403", "robots.txt itself is forbidden (403)", "a 4xx sets no rules: all pages are done", ends={"/": "done"}
)
def _forbidden() -> Pages:
    return ordinary() | {"/robots.txt": text("No.\n", 403)}


@fault(
    "robots-500",
    "robots.txt always answers 500",
    "nothing else is requested; after host_patience the seed is a dead letter robots_unreachable",
    forbidden=("/",),
    ends={"/": "failed robots_unreachable|failed host_unreachable"},
)
def _broken() -> Pages:
    return ordinary() | {"/robots.txt": text("Oh dear.\n", 500)}


@fault(
    "robots-429",
    "robots.txt always answers 429",
    "nothing else is requested; after host_patience the seed is a dead letter robots_unreachable",
    forbidden=("/",),
    ends={"/": "failed robots_unreachable|failed host_unreachable"},
)
def _too_many() -> Pages:
    return ordinary() | {"/robots.txt": text("Slowly.\n", 429)}


@fault(
    "robots-flapping",
    "robots.txt answers 503 twice, then forbids /private/",
    "no page before the third answer; then pages are done and /private/a is skipped as robots",
    forbidden=("/private/",),
    ends={"/": "done", "/private/a": "skipped robots"},
)
def _flapping() -> Pages:
    asked = 0

    def robots(_: Request) -> Answer:
        nonlocal asked
        asked += 1
        return text("Busy.\n", 503) if asked <= 2 else text("User-agent: *\nDisallow: /private/\n")

    return ordinary("/private/a") | {"/robots.txt": robots, "/private/a": page("Private")}


@fault(
    "robots-timeout",
    "robots.txt is never answered",
    "nothing else is requested; after host_patience the seed is a dead letter robots_unreachable",
    forbidden=("/",),
    ends={"/": "failed robots_unreachable|failed host_unreachable"},
)
def _timeout() -> Pages:
    return ordinary() | {"/robots.txt": lambda _: Script(status=0, steps=(), after=After.HANG)}


@fault(
    "robots-redirect",
    "robots.txt redirects to /rules/robots on the same host, which forbids /private/",
    "the rules hold: /private/a is skipped as robots",
    forbidden=("/private/",),
    ends={"/": "done", "/private/a": "skipped robots"},
)
def _redirect() -> Pages:
    return ordinary("/private/a") | {
        "/robots.txt": redirect("/rules/robots", 301),
        "/rules/robots": text("User-agent: *\nDisallow: /private/\n"),
        "/private/a": page("Private"),
    }


@fault(
    "robots-redirect-host",
    "robots.txt redirects to another host, whose rules forbid /private/",
    "the rules of the other host hold here: /private/a is skipped as robots",
    forbidden=("/private/",),
    ends={"/": "done", "/private/a": "skipped robots"},
)
def _redirect_host() -> Pages:
    return ordinary("/private/a") | {
        "/robots.txt": redirect(f"http://{host_of('robots-elsewhere')}/shared-rules.txt"),
        "/private/a": page("Private"),
    }


@fault(
    "robots-elsewhere",
    "keeps the rules to which robots-redirect-host points; its own robots.txt forbids /mine",
    "requested for /shared-rules.txt only, at its own pace",
    seeds=(),
    forbidden=("/mine",),
    holds_rules=("/shared-rules.txt",),
)
def _elsewhere() -> Pages:
    return ordinary(robots="User-agent: *\nDisallow: /mine\n") | {
        "/shared-rules.txt": text("User-agent: *\nDisallow: /private/\n"),
        "/mine": page("Mine"),
    }


@fault(
    "robots-redirect-loop",
    "robots.txt redirects to itself without end",
    "followed five times at most, then taken as missing: pages are done",
    ends={"/": "done"},
)
def _redirect_loop() -> Pages:
    return ordinary() | {"/robots.txt": redirect("/robots.txt")}


@fault(
    "robots-600kb",
    "a robots.txt of 600 KB: Disallow: /early at its beginning, Disallow: /late beyond 500 KiB",
    "/early is skipped as robots; /late lies beyond what is parsed and is done",
    forbidden=("/early",),
    ends={"/early": "skipped robots", "/late": "done"},
)
def _huge() -> Pages:
    top = b"User-agent: *\nDisallow: /early\n"
    filler = b"# one more line that says nothing at all\n"
    padding = filler * ((PARSE_LIMIT_BYTES + 10_000) // len(filler))
    end = b"Disallow: /late\n" + filler * (90_000 // len(filler))
    return ordinary("/early", "/late", robots=top + padding + end) | {"/early": page("Early"), "/late": page("Late")}


@fault(
    "robots-bom",
    "robots.txt begins with a UTF-8 byte order mark",
    "the first line still counts: /private/a is skipped as robots",
    forbidden=("/private/",),
    ends={"/": "done", "/private/a": "skipped robots"},
)
def _bom() -> Pages:
    robots = b"\xef\xbb\xbfUser-agent: *\nDisallow: /private/\n"
    return ordinary("/private/a", robots=robots) | {"/private/a": page("Private")}


@fault(
    "robots-latin1",
    "robots.txt is not UTF-8: Latin-1 bytes in comments and rules",
    "lines that can be read still count: /private/a is skipped as robots",
    forbidden=("/private/",),
    ends={"/": "done", "/private/a": "skipped robots"},
)
def _latin1() -> Pages:
    robots = "# f\xfcr alle\nUser-agent: *\nDisallow: /caf\xe9\nDisallow: /private/\n# \xff\xfe\n".encode("latin-1")
    return ordinary("/private/a", robots=robots) | {"/private/a": page("Private")}


@fault(
    "robots-html",
    "robots.txt is an HTML page with status 200, as catch-all sites have it",
    "no line is a rule: all pages are done",
    ends={"/": "done"},
)
def _page() -> Pages:
    return ordinary() | {"/robots.txt": html("<!doctype html><title>Shop</title><p>Welcome to our shop.</p>")}


@fault(
    "robots-cr",
    "robots.txt whose lines end in CR alone",
    "CR ends a line: /private/a is skipped as robots",
    forbidden=("/private/",),
    ends={"/": "done", "/private/a": "skipped robots"},
)
def _cr() -> Pages:
    robots = reply(200, b"User-agent: *\rDisallow: /private/\r", "text/plain")
    return ordinary("/private/a") | {"/robots.txt": robots, "/private/a": page("Private")}
