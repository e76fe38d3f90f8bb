"""What a process keeps of a crawl between its pages: the scope, and which links need no further look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from curtsy.links import LinkMemo
from curtsy.model import Chain, Crawl, Kind, NewUrl
from curtsy.settings import Settings
from curtsy.urls import Scope, fingerprint, host_key

#: links remembered per crawl and process: about 30 MB when full
_REMEMBERED = 200_000


def page_kind(crawl: Crawl) -> Kind:
    """How a page of it is asked for that nothing is known of."""
    return Kind.BROWSER if crawl.render == "always" else Kind.PAGE


class CrawlContext:
    """One crawl in one process. `remember` is called only for links whose rows stand in the store."""

    def __init__(self, crawl: Crawl, settings: Settings, denies: Callable[[str], bool] = lambda _: False) -> None:
        self.crawl = crawl
        #: hosts that are on the deny list
        self._denies = denies
        self._settings = settings
        self._unit = settings.politeness_unit
        self._memo = LinkMemo(_REMEMBERED)
        #: normal URLs that need no further look: out of scope or denied, or their rows stand in the store
        self._done: set[str] = set()
        #: normal URL -> the row it would make
        self._links: dict[str, NewUrl] = {}
        #: members that this process has seen join; the store may not know them yet
        self._admitted: set[str] = set()
        self.scope = self._scope_of(crawl)
        #: origins whose sitemaps this process has committed
        self.sitemapped: set[str] = set()
        #: pages of other crawls exist: requests can be conditional
        self.revisits = False
        #: a browser is tried where plain HTML has no content worth having
        self.auto_render = crawl.render == "auto"
        #: how its pages are asked for at first
        self._page = page_kind(crawl)
        #: set-cookie pairs per host, only with crawl.cookies
        self.jars: dict[str, dict[str, str]] = {}

    def _scope_of(self, crawl: Crawl) -> Scope:
        s = self._settings
        return Scope.of(
            replace(crawl, members=crawl.members | self._admitted),
            max_url_length=s.max_url_length,
            max_path_segments=s.max_path_segments,
            max_repeated_segments=s.max_repeated_segments,
        )

    def renew(self, crawl: Crawl) -> None:
        """The crawl's row changed; a link that was out of scope may be in now. Members only join: a row that was read
        before a commit of ours may come after it."""
        known = self.crawl.members
        members = crawl.members | known
        self.crawl = replace(crawl, members=members, version=max(crawl.version, self.crawl.version))
        if members != known:
            self._widen()

    def _widen(self) -> None:
        self.scope = self._scope_of(self.crawl)
        self.look_again()

    def admit(self, member: str) -> None:
        """A seed's redirects ended there: it belongs to the crawl from here on, for this process before its commit."""
        if member not in self._admitted:
            self._admitted.add(member)
            self._widen()

    def new_links(self, base_url: str, hrefs: list[str], depth: int) -> list[NewUrl]:
        """Links that may be new rows, at `depth`; most links of a page are repeats and end in one dict look-up."""
        crawl = self.crawl
        if crawl.max_depth is not None and depth > crawl.max_depth:
            return []
        found: list[NewUrl] = []
        links = self._links
        for url in self._memo.resolve_all(base_url, hrefs, self._done):
            link = links.get(url) or self._look_at(url, depth)
            if link is not None:
                if link.depth > depth:
                    link = links[url] = replace(link, depth=depth)
                found.append(link)
        return found

    def _look_at(self, url: str, depth: int) -> NewUrl | None:
        link = self.row(url, depth)
        if link is None:
            self.remember(url)
            return None
        if len(self._links) >= _REMEMBERED:
            self._links.clear()
        self._links[url] = link
        return link

    def row(self, url: str, depth: int, kind: Kind = Kind.PAGE, chain: Chain | None = None) -> NewUrl | None:
        """The row a normal URL without session ids would make, or None where it is out of scope or denied."""
        if self.scope.admits(url, depth) is not None:
            return None
        link = self.any_row(url, depth, kind, chain)
        return None if self._denies(link.host) else link

    def any_row(self, url: str, depth: int, kind: Kind = Kind.PAGE, chain: Chain | None = None) -> NewUrl:
        """The row a normal URL makes, whatever the scope says."""
        if kind is Kind.PAGE:
            kind = self._page
        return NewUrl(
            crawl=self.crawl.n, fp=fingerprint(url), url=url, host=host_key(url, self._unit), kind=kind, depth=depth,
            chain=chain,
        )  # fmt: skip

    def look_again(self) -> None:
        """The deny list changed, or the scope: what was out may be in now."""
        self._links.clear()
        self._done.clear()
        self._memo.clear()

    def remember(self, url: str) -> None:
        """It needs no further look: its row stands in the store, or it is out of scope."""
        if len(self._done) >= _REMEMBERED:
            self._done.clear()
        self._done.add(url)
        self._links.pop(url, None)
