"""Requests of a host with several slots, when one of them brings back that the host asks for a pause."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from curtsy.core.clock import boot
from curtsy.core.model import Entry, Kind, Lane, Lease
from curtsy.core.outcome import Outcome
from curtsy.core.settings import Settings
from curtsy.crawl.in_flight import InFlight
from curtsy.fetch.document_limits import DocumentLimits


@dataclass
class Sender:
    """Keeps what was started and what was canceled."""

    done: dict[int, Any] = field(default_factory=dict)
    canceled: list[tuple[int, bool]] = field(default_factory=list)

    def start(self, job: Any, done: Any, started: Any = None) -> None:
        self.done[job.id] = done

    def cancel(self, job_id: int, unsent_only: bool = False) -> None:
        self.canceled.append((job_id, unsent_only))


def in_flight(sender: Sender) -> InFlight:
    fakes: Any = SimpleNamespace(
        may_run=lambda _: True, foreign=(), denies=lambda _: False, hold=lambda _: None, learn=lambda *_: None
    )
    return InFlight(
        settings=Settings(), fetcher=sender, crawl_cache=fakes, host_policy=fakes, groups=fakes,  # type: ignore[arg-type]
        stored=fakes, on_back=lambda: None, browser=lambda: sender,  # type: ignore[arg-type,return-value]
        documents=DocumentLimits.of(Settings()), may_continue=lambda: True,
    )  # fmt: skip


def lease(fence: int, host: str, asked_at: float) -> Lease:
    return Lease(
        fence=fence, shard=0, host=host, crawl=1, crawl_version=1, lane=Lane.BATCH,
        entry=Entry(url=f"http://{host}/robots.txt", kind=Kind.ROBOTS), delay_ms=0, per_host=4, robots_ms=0,
        valid_until=boot() + 27, asked_at=asked_at,
    )  # fmt: skip


def answered(status: int) -> Outcome:
    now = boot()
    return Outcome(url="http://a.test/robots.txt", status=status, started=now - 0.01, ended=now)


def test_a_host_that_asks_for_a_pause_gets_nothing_that_was_granted_before() -> None:
    sender = Sender()
    requests = in_flight(sender)
    before = boot()
    for fence, host in ((1, "a.test"), (2, "a.test"), (3, "b.test")):
        requests.start(lease(fence, host, before), None)
    sender.done[1](1, answered(429))
    # Nothing more is sent on the other slot of that host; other hosts go on.
    assert sender.canceled == [(2, True)]
    requests.start(lease(4, "a.test", before), None)
    assert 4 not in sender.done
    assert [(release.lease.fence, release.url_back) for release, _ in requests.back if release.lease.fence == 4] == [
        (4, True)
    ]
    # The frontier grants this one after the pause.
    requests.start(lease(5, "a.test", boot()), None)
    assert 5 in sender.done


def test_an_ordinary_answer_cancels_nothing() -> None:
    sender = Sender()
    requests = in_flight(sender)
    for fence in (1, 2):
        requests.start(lease(fence, "a.test", boot()), None)
    sender.done[1](1, answered(404))
    assert sender.canceled == []
    requests.start(lease(3, "a.test", boot()), None)
    assert 3 in sender.done


def test_a_host_is_active_for_a_while_after_its_request() -> None:
    sender = Sender()
    requests = in_flight(sender)
    for fence, host in ((1, "a.test"), (2, "b.test")):
        requests.start(lease(fence, host, boot()), None)
    sender.done[1](1, answered(200))
    assert requests.active_hosts(boot()) == 2
    assert requests.active_hosts(boot() + 60) == 1, "b.test still has a request in flight"
