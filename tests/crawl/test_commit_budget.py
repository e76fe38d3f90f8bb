"""What a commit's transaction counts against max_pages: pages that became durable, each once."""

from __future__ import annotations

from hashlib import sha256

import pytest

from curtsy.core.model import Crawl, Entry, Lane, Lease, NewUrl
from curtsy.core.outcome import Action, Decision, Outcome
from curtsy.core.settings import Settings
from curtsy.crawl.commit_rows import Body, Links
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.results import PageFacts, Result, Returned
from curtsy.crawl.transaction import Transaction, Written
from curtsy.frontier.messages import Times
from curtsy.rules.urls import fingerprint
from curtsy.store import crawls, queues, urls
from curtsy.store.engine import Store

NOW = 1_700_000_000_000


class Pages:
    """A crawl with max_pages whose pages are committed by hand."""

    def __init__(self, store: Store, max_pages: int, urls_: int) -> None:
        self.store = store
        self.crawl = store.run(crawls.create, Crawl(id="0192", request_id="r", max_pages=max_pages))
        settings = Settings()
        contexts = {self.crawl.n: CrawlContext(self.crawl, settings)}
        self.transaction = Transaction(settings, contexts, {})
        with store.begin() as tx:
            queues.open_queues(tx, [(self.crawl.n, "a.test", "batch", 0)])
            urls.insert(
                tx,
                [
                    NewUrl(crawl=self.crawl.n, fp=fingerprint(self.url(i)), url=self.url(i), host="a.test")
                    for i in range(urls_)
                ],
                NOW,
            )

    def url(self, i: int) -> str:
        return f"https://a.test/{i}"

    def result(self, i: int, fence: int) -> Returned:
        url = self.url(i)
        lease = Lease(
            fence=fence, shard=0, host="a.test", crawl=self.crawl.n, crawl_version=0, lane=Lane.BATCH,
            entry=Entry(url=url), delay_ms=0, per_host=1, robots_ms=0, valid_until=0.0,
        )  # fmt: skip
        outcome = Outcome(url=url, status=200, body=b"x", started=1.0, ended=2.0)
        result = Result(
            lease=lease, fp=fingerprint(url), decision=Decision(action=Action.DONE), outcome=outcome, page=PageFacts()
        )
        return Returned(result=result, times=Times(NOW + fence, NOW + fence, NOW + fence))

    def commit(self, *results: tuple[int, int]) -> Written:
        group = [self.result(i, fence) for i, fence in results]
        bodies = {done.result.lease.fence: Body(sha256(b"x").hexdigest()) for done in group}
        return self.store.run(self.transaction, self.transaction.plan(group, Links(), bodies, NOW))

    def ends(self) -> list[str]:
        with self.store.read() as tx:
            rows = [urls.get(tx, self.crawl.n, fingerprint(self.url(i))) for i in range(3)]
        return [f"{row.state} {row.reason}".strip() for row in rows if row is not None]

    def counted(self) -> int:
        with self.store.read() as tx:
            return crawls.by_n(tx, self.crawl.n).pages


@pytest.fixture
def pages(store: Store) -> Pages:
    return Pages(store, max_pages=2, urls_=3)


def test_what_is_over_max_pages_is_skipped(pages: Pages) -> None:
    written = pages.commit((0, 1), (1, 2), (2, 3))
    assert pages.ends() == ["done", "done", "skipped budget"]
    assert (written.used, written.surplus, pages.counted()) == ({1, 2}, {3}, 2)


def test_a_result_whose_row_is_settled_already_spends_nothing(pages: Pages) -> None:
    pages.commit((0, 5))
    written = pages.commit((0, 6), (1, 7))
    assert pages.ends() == ["done", "done", "open"]
    assert (written.used, written.surplus, pages.counted()) == ({7}, set(), 2)


def test_a_result_with_an_older_fence_spends_nothing(pages: Pages) -> None:
    fp = fingerprint(pages.url(0))
    pages.store.run(urls.end_leases, [(pages.crawl.n, fp, 9, False, False)])
    written = pages.commit((0, 8), (1, 10), (2, 11))
    assert pages.ends() == ["open", "done", "done"]
    assert (written.used, written.surplus, pages.counted()) == ({10, 11}, set(), 2)


def test_two_results_for_one_row_in_a_group_are_one_page(pages: Pages) -> None:
    written = pages.commit((0, 4), (0, 5), (1, 6))
    assert pages.ends() == ["done", "done", "open"]
    assert (written.used, written.surplus, pages.counted()) == ({5, 6}, set(), 2)


def test_a_repeated_transaction_tells_the_same_of_the_budget(pages: Pages) -> None:
    """Its answer was lost: what it spent is spent, and the frontier must not be given it back."""
    results = ((0, 1), (1, 2), (2, 3))
    first = pages.commit(*results)
    again = pages.commit(*results)
    assert (again.used, again.surplus) == (first.used, first.surplus) == ({1, 2}, {3})
    assert pages.counted() == 2
