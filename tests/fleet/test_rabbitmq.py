"""RabbitMQ as the broker: shifts and stages travel over it, and a worker takes no more than its seats can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from fleet_folder import FleetFolder
from rabbitmq import RabbitMQ, find

from curtsy.store import outbox, records
from curtsy.tinyweb import TinyWeb

NewFleet = Callable[..., FleetFolder]
SEATS = 2

pytestmark = pytest.mark.skipif(find() is None, reason="rabbitmq-server is not installed")


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=6, pages=6, page_kb=2, faults=False) as started:
        yield started


@pytest.fixture
def rabbit(tmp_path: Path) -> Iterator[RabbitMQ]:
    with RabbitMQ(tmp_path / "rabbitmq") as started:
        yield started


def test_a_crawl_with_stages_runs_over_rabbitmq(new_fleet: NewFleet, web: TinyWeb, rabbit: RabbitMQ) -> None:
    fleet = new_fleet(web, broker_url=rabbit.url)
    fleet.worker(seats=SEATS)
    fleet.beat()
    crawl = fleet.submit(web.seeds, delay_s=0.2, schema="page")
    assert fleet.until_ended(crawl).pages == 36
    with fleet.store.read() as tx:
        found, _ = records.chunk(tx, crawl.n, limit=1000)
        assert not outbox.has_open(tx, crawl.n)
    assert len({record.url for record in found}) == 36
    assert fleet.verdict().polite
    # Nothing went the other way, and what RabbitMQ may have under way to the worker is one message per seat.
    assert [fleet.broker("EXISTS", queue) for queue in ("fetch.batch", "default", "inference")] == [0, 0, 0]
    assert stats(rabbit.url)["prefetch_count"] == SEATS
    assert fleet.stop("w1") == 0
    assert fleet.stop("beat") == 0


def stats(url: str) -> dict[str, Any]:
    with Celery("test", broker=url) as app:
        (found,) = app.control.inspect(timeout=10, limit=1).stats().values()
        return dict(found)
