"""URLs: WHATWG parsing, the normal form we crawl, fingerprints, units of politeness, and the scope of a crawl.

No I/O. A URL that `normalise` returned is called normal: http or https, absolute, no fragment, no credentials,
without a default port, always with a path. Functions that name a normal URL accept nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import re2
from ada_url import join_url, normalize_url
from xxhash import xxh3_128_digest

from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, hot_value

if TYPE_CHECKING:
    from tldextract import TLDExtract

#: longer patterns are refused: their automata use much memory
MAX_PATTERN_LENGTH = 1_000
_PATTERN_MEMORY_BYTES = 4 << 20
#: everything before the last "@": in an invalid URL the end of a password is unknown
_CREDENTIALS = re.compile(r"\A([a-z][a-z0-9+.-]*://)?.*@", re.DOTALL | re.IGNORECASE)


def parse(url: str, base: str | None = None) -> str | None:
    """The URL as serialized by the WHATWG URL standard, or None if its parser fails."""
    try:
        return join_url(base, url) if base else normalize_url(url)
    except ValueError:
        if url.isascii() and (base is None or base.isascii()):
            return None
    return _parse_scalar(_scalar(url), None if base is None else _scalar(base))


def _parse_scalar(url: str, base: str | None) -> str | None:
    try:
        return join_url(base, url) if base else normalize_url(url)
    except ValueError:
        return None


def _scalar(text: str) -> str:
    """Lone surrogates become U+FFFD, as in a WHATWG scalar value string."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def normalise(url: str, base: str | None = None) -> str | None:
    """The form we crawl: only http and https, no fragment, no user or password; None for everything else."""
    href = parse(url, base)
    if href is None or not href.startswith(("http://", "https://")):
        return None
    cut = href.find("#")
    if cut >= 0:
        href = href[:cut]
    # The serializer escapes "@" everywhere in the authority but before the host.
    start = href.index("//") + 2
    at = href.rfind("@", start, href.index("/", start))
    return href if at < 0 else href[:start] + href[at + 1 :]


def has_credentials(url: str) -> bool:
    """Does it name a user or a password, as `https://user:password@example.com/` does?"""
    return "@" in (parse(url) or "").partition("//")[2].partition("/")[0]


def hide_credentials(text: str) -> str:
    """A user's input for a URL, safe for messages: without a possible user name or password."""
    return _CREDENTIALS.sub(r"\1***@", text)


def fingerprint(url: str) -> bytes:
    """16 bytes that stand for a normal URL."""
    return xxh3_128_digest(url.encode())


def short(fp: bytes) -> int:
    """63 bits of a fingerprint, for filters whose integers are signed."""
    return int.from_bytes(fp[:8], "big") >> 1


def origin(url: str) -> str:
    """`https://example.com[:8443]` of a normal URL."""
    return url[: url.index("/", url.index("//") + 2)]


def host_key(url: str, unit: str = "host") -> str:
    """The unit of politeness of a normal URL: `hostname[:port]`, or its registrable domain for unit `domain`.

    The trailing dot is dropped: `example.com.` is the machine `example.com`, although its URLs and origin differ.
    """
    start = url.index("//") + 2
    host = url[start : url.index("/", start)]
    if host[-1] == "." or ".:" in host:
        host = _rootless(host)
    return host if unit == "host" else registrable_domain(host)


def host_named(name: str, unit: str = "host") -> str:
    """The unit of politeness that a user means by a host name or a URL: the most likely of `hosts_named`."""
    return hosts_named(name, unit)[0]


def hosts_named(name: str, unit: str = "host") -> tuple[str, ...]:
    """The units that a name can mean, the likeliest first.

    `example.com:80` is `example.com`, because URLs lose the default port of their scheme; only a server
    with https on port 80 has that unit.
    """
    spelt = [name] if "://" in name else [f"https://{name}/", f"http://{name}/"]
    urls = [] if "*" in name else [url for text in spelt if (url := normalise(text)) is not None]
    if not urls:
        raise UsageError(f"{hide_credentials(name)!r} is not a host. Write hostname, hostname:port, or a URL.")
    return tuple(sorted({host_key(url, unit) for url in urls}, key=len))


def _rootless(host: str) -> str:
    """`example.com` for `example.com.`: the same machine, so the same unit."""
    name, colon, port = host.partition(":")
    return (name.removesuffix(".") or name) + colon + port


@cache
def _suffixes() -> TLDExtract:
    from tldextract import TLDExtract  # most crawls never need a domain, and the import is slow

    # Strictly the list that came with the package: no download, no cache folder. Private suffixes count, so that two
    # people's sites on one hosting service are two domains.
    return TLDExtract(suffix_list_urls=(), cache_dir=None, fallback_to_snapshot=True, include_psl_private_domains=True)


@lru_cache(maxsize=65_536)
def registrable_domain(host: str) -> str:
    """`example.co.uk` for `www.example.co.uk:8080`; names without one, and addresses, are returned unchanged, without
    the port.
    """
    name = host if host.endswith("]") else host.rsplit(":", 1)[0] if ":" in host else host
    found = _suffixes()(name)
    if found.suffix or found.ipv4 or found.ipv6:
        return found.top_domain_under_public_suffix or name
    # No suffix of the list matches: by the rules of the list, the last label is the suffix.
    return ".".join(name.rsplit(".", 2)[-2:])


@hot_value(kw_only=False)
class Scope:
    """Which links are URLs of a crawl."""

    #: `host` | `domain` | `any`
    reach: str
    members: frozenset[str]
    include: tuple[Any, ...]
    exclude: tuple[Any, ...]
    max_depth: int | None
    max_url_length: int
    max_path_segments: int
    max_repeated_segments: int

    @classmethod
    def of(
        cls,
        crawl: Crawl,
        *,
        max_url_length: int = 2083,
        max_path_segments: int = 32,
        max_repeated_segments: int = 3,
    ) -> Scope:
        """A bad pattern raises UsageError and names it."""
        return cls(
            reach=crawl.scope,
            members=crawl.members,
            include=tuple(_compile(pattern) for pattern in crawl.include),
            exclude=tuple(_compile(pattern) for pattern in crawl.exclude),
            max_depth=crawl.max_depth,
            max_url_length=max_url_length,
            max_path_segments=max_path_segments,
            max_repeated_segments=max_repeated_segments,
        )

    @staticmethod
    def member(url: str, reach: str) -> str:
        """The value of `Crawl.members` for a normal URL: its host, or its registrable domain."""
        return host_key(url, "domain" if reach == "domain" else "host")

    def admits(self, url: str, depth: int) -> str | None:
        """None if the normal URL is in scope at that depth, otherwise the reason as one word."""
        if len(url) > self.max_url_length:
            return "length"
        if self.max_depth is not None and depth > self.max_depth:
            return "depth"
        if self.reach != "any" and host_key(url, self.reach) not in self.members:
            return "scope"
        if (trap := self._trap(url)) is not None:
            return trap
        for pattern in self.exclude:
            if pattern.search(url) is not None:
                return "exclude"
        if self.include and all(pattern.search(url) is None for pattern in self.include):
            return "include"
        return None

    def _trap(self, url: str) -> str | None:
        segments = url.partition("?")[0].split("/")[3:]
        if not segments[-1]:
            segments.pop()
        if len(segments) > self.max_path_segments:
            return "segments"
        if len(set(segments)) == len(segments):
            return None
        if max(Counter(segments).values()) > self.max_repeated_segments or _has_run(
            segments, self.max_repeated_segments
        ):
            return "repeated"
        return None


def _has_run(segments: list[str], times: int) -> bool:
    """Whether a run of two or more segments occurs `times` times in a row: /a/b/a/b/a/b."""
    times = max(times, 2)
    for length in range(2, len(segments) // times + 1):
        streak = 0
        for here, there in zip(segments, segments[length:], strict=False):
            streak = streak + 1 if here == there else 0
            if streak == length * (times - 1):
                return True
    return False


def _compile(pattern: str) -> Any:
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise UsageError(
            f"The pattern {pattern[:60]!r}... has {len(pattern)} characters; at most {MAX_PATTERN_LENGTH} are allowed."
        )
    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise UsageError(
            f"The pattern {pattern!r} is not a regular expression that RE2 understands (no look-around, no "
            f"back-references): {reason}"
        ) from error
