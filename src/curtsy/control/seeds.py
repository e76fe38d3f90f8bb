"""Seeds: one check for all entry points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

from curtsy.core.errors import RefusedSeeds
from curtsy.core.settings import Settings
from curtsy.fetch.guard import Network, address_allowed, check_url, is_address, networks
from curtsy.rules.folding import Folding
from curtsy.rules.urls import hide_credentials, normalise

#: refused seeds that an error names
MOST_REFUSED = 20


def check(seed: str, settings: Settings | None = None, *, public: bool = False) -> str:
    """The folded form of a seed. Raises ValueError with the reason if the seed cannot be crawled.

    With `public` an address that the settings do not allow is refused too. Names are checked when they are resolved.
    """
    url = normalise(seed.strip())
    if url is None:
        raise ValueError(f"{hide_credentials(seed.strip())[:100]!r} is not an http or https URL")
    if settings is not None:
        url = Folding.of(settings).named(url)
    if settings is not None and len(url) > settings.max_url_length:
        most = settings.max_url_length
        raise ValueError(f"{hide_credentials(url)[:60]}... has {len(url):,} characters; max_url_length is {most:,}")
    if public and settings is not None:
        target = check_url(url)
        if target is None:
            raise ValueError(f"{hide_credentials(url)[:100]!r} is not an http or https URL")
        if is_address(target.host) and not address_allowed(target.host, _allowed(settings.allow_private)):
            raise ValueError(f"{target.host} is not a public address")
    return url


#: names that never lead to another network (RFC 6761)
_OWN_NAMES = ("localhost", ".localhost", ".test", ".invalid", ".example")


def has_placeholder(settings: Settings) -> bool:
    """Whether the User-Agent names no contact."""
    return ".invalid" in settings.full_user_agent


def is_public(url: str, settings: Settings) -> bool:
    """Whether the host of a seed may belong to others: not an address of this network, nor a name set by --resolve."""
    target = check_url(url)
    if target is None:
        return False
    if is_address(target.host):
        return address_allowed(target.host, ())
    ruled = any(fnmatchcase(target.host, rule.partition("=")[0]) for rule in settings.resolve)
    return not ruled and not target.host.endswith(_OWN_NAMES)


def each(
    seeds: Iterable[str], settings: Settings | None = None, place: str = "seed {}", first: int = 0
) -> Iterator[str]:
    """Normalized URLs, one by one as seeds arrive. The first bad seed raises an error with its position."""
    for number, seed in enumerate(seeds, first):
        try:
            url = check(seed, settings)
        except ValueError as error:
            raise RefusedSeeds([(place.format(number), str(error))]) from None
        yield url


def checked(seeds: Iterable[str], settings: Settings, place: str, first: int = 0) -> list[str]:
    """Normalized URLs of a complete list of seeds, or an error that names the bad ones."""
    urls: list[str] = []
    refused: list[tuple[str, str]] = []
    for number, seed in enumerate(seeds, first):
        try:
            urls.append(check(seed, settings, public=True))
        except ValueError as error:
            if len(refused) < MOST_REFUSED:
                refused.append((place.format(number), str(error)))
    if refused:
        raise RefusedSeeds(refused)
    return urls


@lru_cache(maxsize=4)
def _allowed(cidrs: tuple[str, ...]) -> tuple[Network, ...]:
    return networks(cidrs)
