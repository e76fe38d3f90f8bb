"""What a process keeps of a crawl between its pages: the scope, the links that are known already, cookie jars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from curtsy.content.links import LinkMemo
from curtsy.core.model import Chain, Crawl, Kind, NewUrl
from curtsy.core.outcome import Outcome
from curtsy.core.settings import Settings
from curtsy.rules.cookies import CookieJar
from curtsy.rules.folding import Folding
from curtsy.rules.urls import Scope, fingerprint, host_key

#: links remembered per crawl and process: about 30 MB when full
_REMEMBERED = 200_000


class CrawlContext:
    """One crawl in one process. Call `remember` only for links whose rows are in the store."""

    def __init__(
        self, crawl: Crawl, settings: Settings, denies: Callable[[str], bool] = lambda _: False, *,
        revisits: bool = False,
    ) -> None:  # fmt: skip
        self.crawl = crawl
        #: hosts that are on the deny list
        self._denies = denies
        self._settings = settings
        self._unit = settings.politeness_unit
        self.folding = Folding.of(settings)
        self._memo = LinkMemo(_REMEMBERED, self.folding.links)
        #: normalized URLs that are out of scope or denied, or whose rows are in the store
        self._done: set[str] = set()
        #: normalized URL -> the row it would make
        self._links: dict[str, NewUrl] = {}
        #: members that joined in this process; the store may not have them yet
        self._admitted: set[str] = set()
        self.scope = self._scope_of(crawl)
        self._sitemap_scope = _without_patterns(self.scope)
        #: origins whose sitemaps this process has committed
        self.sitemapped: set[str] = set()
        #: pages of other crawls exist: requests can be conditional
        self.revisits = revisits
        #: pages whose HTML has no content without scripts go to a browser
        self.auto_render = crawl.render == "auto"
        #: the kind of its pages' first request
        self._page = crawl.page_kind
        #: by host; empty unless the crawl has the option `cookies`
        self.jars: dict[str, CookieJar] = {}

    def store_cookies(self, host: str, url: str, outcome: Outcome) -> None:
        if lines := outcome.header_all("set-cookie"):
            self.jars.setdefault(host, CookieJar()).store(url, lines)

    def _scope_of(self, crawl: Crawl) -> Scope:
        s = self._settings
        return Scope.of(
            replace(crawl, members=crawl.members | self._admitted),
            max_url_length=s.max_url_length,
            max_path_segments=s.max_path_segments,
            max_repeated_segments=s.max_repeated_segments,
        )

    def renew(self, crawl: Crawl) -> None:
        """The crawl's row changed, and links may be in scope now. Members never leave: a row that was read before our
        own commit may arrive after it."""
        known = self.crawl.members
        members = crawl.members | known
        self.crawl = replace(crawl, members=members, version=max(crawl.version, self.crawl.version))
        if members != known:
            self._widen()

    def _widen(self) -> None:
        self.scope = self._scope_of(self.crawl)
        self._sitemap_scope = _without_patterns(self.scope)
        self.forget_links()

    def admit(self, member: str) -> None:
        """A seed's redirects ended at this host: it joins the scope, in this process even before the commit."""
        if member not in self._admitted:
            self._admitted.add(member)
            self._widen()

    def new_links(self, base_url: str, hrefs: list[str], depth: int) -> list[NewUrl]:
        """Links that may be new rows, at `depth`. Most links of a page are repeats: those cost one dict lookup."""
        crawl = self.crawl
        if crawl.max_depth is not None and depth > crawl.max_depth:
            return []
        found: list[NewUrl] = []
        links = self._links
        for url in self._memo.resolve_all(base_url, hrefs, self._done):
            link = links.get(url) or self._check(url, depth)
            if link is not None:
                if link.depth > depth:
                    link = links[url] = replace(link, depth=depth)
                found.append(link)
        return found

    def _check(self, url: str, depth: int) -> NewUrl | None:
        link = self.row(url, depth)
        if link is None:
            self.remember(url)
            return None
        if len(self._links) >= _REMEMBERED:
            self._links.clear()
        self._links[url] = link
        return link

    def row(self, url: str, depth: int, kind: Kind = Kind.PAGE, chain: Chain | None = None) -> NewUrl | None:
        """The row that a folded URL would make; None: it is out of scope or denied.

        Include and exclude patterns apply to pages, not to the sitemaps that list them.
        """
        scope = self._sitemap_scope if kind is Kind.SITEMAP else self.scope
        if scope.admits(url, depth) is not None:
            return None
        link = self.any_row(url, depth, kind, chain)
        return None if self._denies(link.host) else link

    def any_row(self, url: str, depth: int, kind: Kind = Kind.PAGE, chain: Chain | None = None) -> NewUrl:
        """The row that a normalized URL makes, in scope or not."""
        if kind is Kind.PAGE:
            kind = self._page
        return NewUrl(
            crawl=self.crawl.n, fp=fingerprint(url), url=url, host=host_key(url, self._unit), kind=kind, depth=depth,
            chain=chain,
        )  # fmt: skip

    def forget_links(self) -> None:
        """The deny list or the scope changed: every link is checked again."""
        self._links.clear()
        self._done.clear()
        self._memo.clear()

    def remember(self, url: str) -> None:
        """The URL needs no further check: its row is in the store, or it is out of scope."""
        if len(self._done) >= _REMEMBERED:
            self._done.clear()
        self._done.add(url)
        self._links.pop(url, None)


def _without_patterns(scope: Scope) -> Scope:
    return replace(scope, include=(), exclude=())
