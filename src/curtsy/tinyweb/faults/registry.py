"""Declaration of hosts with faults.

A module of this package declares its hosts with `@fault(...)` above a function that builds the host's pages. The
function runs when a server with the host starts, not when the hosts are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from curtsy.tinyweb.answers import Answer, Handler, Pages, Request, html, redirect, text
from curtsy.tinyweb.facts import DOMAIN

REGISTRY: dict[str, FaultHost] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultHost:
    """One host with a fault."""

    #: the first label of its host name, as punycode where it is not ASCII
    name: str
    about: str
    #: what a correct crawler does
    expected: str
    build: Callable[[], Pages]
    #: where a crawl of this host begins; empty for hosts that others only refer to
    seeds: tuple[str, ...]
    #: path prefixes that robots.txt disallows for `curtsy`; "/" is everything except robots.txt itself
    forbidden: tuple[str, ...] = ()
    #: exceptions of `forbidden`
    allowed: tuple[str, ...] = ()
    crawl_delay_s: float | None = None
    #: targets that a correct crawler never requests, although robots.txt allows them
    unwanted: tuple[str, ...] = ()
    #: targets with another host's rules: requested like robots.txt, before this host's own
    holds_rules: tuple[str, ...] = ()
    #: target -> its possible results with the tinyweb profile: "state" or "state reason"
    ends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"{self.name}.{DOMAIN}"

    def forbids(self, path: str) -> bool:
        if path == "/robots.txt" or path in self.allowed:
            return False
        return any(path.startswith(prefix) for prefix in self.forbidden)


def fault(
    name: str, about: str, expected: str, *, seeds: tuple[str, ...] = ("/",), ends: Mapping[str, str] | None = None,
    **facts: Any,
) -> Callable[[Callable[[], Pages]], Callable[[], Pages]]:  # fmt: skip
    """Declare a host. `seeds` are paths or whole URLs; in `ends`, `|` separates alternatives; `facts` are other fields
    of FaultHost."""

    def declare(build: Callable[[], Pages]) -> Callable[[], Pages]:
        REGISTRY[name] = FaultHost(
            name=name,
            about=about,
            expected=expected,
            build=build,
            seeds=tuple(f"http://{name}.{DOMAIN}{seed}" if seed.startswith("/") else seed for seed in seeds),
            ends={path: tuple(end.split("|")) for path, end in (ends or {}).items()},
            **facts,
        )
        return build

    return declare


# Parts of most hosts


def host_of(name: str) -> str:
    return f"{name}.{DOMAIN}"


def page(title: str, *links: str, words: str = "An ordinary page.", top: str = "") -> Answer:
    """An ordinary page with links; `top` goes into its head."""
    anchors = "\n".join(f'<p><a href="{link}">{link}</a></p>' for link in links)
    return html(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>{top}</head>\n'
        f"<body><h1>{title}</h1>\n<p>{words}</p>\n{anchors}\n</body></html>\n"
    )


def body_of(title: str, *links: str, words: str = "An ordinary page.") -> bytes:
    """Return the HTML of an ordinary page."""
    answer = page(title, *links, words=words)
    return answer.wire[len(answer.head) :]


def replaced(pages: Pages, change: Callable[[Answer], Answer | Handler], *, robots: bool = False) -> Pages:
    """Return the pages with all answers changed, and with `robots` also robots.txt."""
    return {
        path: change(said) if isinstance(said, Answer) and (robots or path != "/robots.txt") else said
        for path, said in pages.items()
    }


def to_this_server(request: Request) -> Answer:
    """Redirect to the server by its loopback address."""
    return redirect(f"http://127.0.0.1:{request.port}/secret")


def ordinary(*faulty: str, robots: str | bytes | None = "User-agent: *\nAllow: /\n") -> Pages:
    """A home page that links to two ordinary pages and to the faulty ones; robots None: 404."""
    pages: Pages = {
        "/": page("Home", "/one", *faulty, "/two"),
        "/one": page("One", "/", "/two"),
        "/two": page("Two", "/", "/one"),
    }
    if robots is not None:
        pages["/robots.txt"] = text(robots)
    return pages
