"""What a host with a fault is, and how one is declared.

A module of this package declares its hosts with `@fault(...)` above a function that builds the host's pages; the
function runs when a server that shows the host starts, never when the list is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from curtsy.tinyweb.answers import Answer, Pages, html, text
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
    #: where a crawl of this host begins; none for hosts that others only point to
    seeds: tuple[str, ...]
    #: path prefixes that robots.txt forbids to `curtsy`; "/" is everything but robots.txt itself
    forbidden: tuple[str, ...] = ()
    #: exceptions from `forbidden`
    allowed: tuple[str, ...] = ()
    crawl_delay_s: float | None = None
    #: targets that a correct crawler never asks for, though robots.txt does not forbid them
    unwanted: tuple[str, ...] = ()
    #: targets that hold another host's rules: asked for as robots.txt is, before this host's own
    holds_rules: tuple[str, ...] = ()
    #: target -> how it may end with the tinyweb profile: "state" or "state reason"
    ends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"{self.name}.{DOMAIN}"

    def forbids(self, path: str) -> bool:
        if path == "/robots.txt" or path in self.allowed:
            return False
        return any(path.startswith(prefix) for prefix in self.forbidden)


def fault(
    name: str,
    about: str,
    expected: str,
    *,
    seeds: tuple[str, ...] | None = None,
    forbidden: tuple[str, ...] = (),
    allowed: tuple[str, ...] = (),
    crawl_delay_s: float | None = None,
    unwanted: tuple[str, ...] = (),
    holds_rules: tuple[str, ...] = (),
    ends: Mapping[str, str] | None = None,
) -> Callable[[Callable[[], Pages]], Callable[[], Pages]]:
    """Declare a host. `seeds` are paths or whole URLs (None: the home page); in `ends`, `|` parts alternatives."""

    def declare(build: Callable[[], Pages]) -> Callable[[], Pages]:
        at = tuple(f"http://{name}.{DOMAIN}{seed}" if seed.startswith("/") else seed for seed in seeds or ())
        REGISTRY[name] = FaultHost(
            name=name,
            about=about,
            expected=expected,
            build=build,
            seeds=(f"http://{name}.{DOMAIN}/",) if seeds is None else at,
            forbidden=forbidden,
            allowed=allowed,
            crawl_delay_s=crawl_delay_s,
            unwanted=unwanted,
            holds_rules=holds_rules,
            ends={path: tuple(end.split("|")) for path, end in (ends or {}).items()},
        )
        return build

    return declare


# What most of the hosts are made of.


def host_of(name: str) -> str:
    return f"{name}.{DOMAIN}"


def page(title: str, *links: str, words: str = "An ordinary page.", top: str = "") -> Answer:
    """An ordinary page with links; `top` goes into its head."""
    anchors = "\n".join(f'<p><a href="{link}">{link}</a></p>' for link in links)
    return html(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>{top}</head>\n'
        f"<body><h1>{title}</h1>\n<p>{words}</p>\n{anchors}\n</body></html>\n"
    )


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
