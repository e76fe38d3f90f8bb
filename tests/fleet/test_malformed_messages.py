"""A malformed message on a queue is rejected and logged; the worker goes on with the next one."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet_folder import FleetFolder
from kombu import Connection
from rabbitmq import RabbitMQ, find
from waiting import until

from curtsy.tinyweb import TinyWeb

NewFleet = Callable[..., FleetFolder]
QUEUE = "fetch.batch"


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=2, pages=4, page_kb=1, faults=False) as started:
        yield started


def _message(content: Any, *, task: str | None = "curtsy.shift", **changes: Any) -> str:
    """As kombu writes one onto a list."""
    headers = {} if task is None else {"lang": "py", "task": task, "id": "x", "root_id": "x", "argsrepr": "()"}
    encoded = b64encode(json.dumps(content).encode()).decode()
    properties = {
        "body_encoding": "base64", "delivery_tag": "t", "delivery_mode": 2, "correlation_id": "x",
        "delivery_info": {"exchange": "", "routing_key": QUEUE},
    }  # fmt: skip
    return json.dumps(
        {
            "body": encoded, "headers": headers, "properties": properties, "content-type": "application/json",
            "content-encoding": "utf-8",
        }
        | changes
    )  # fmt: skip


#: Celery's protocol: arguments, keyword arguments, options
_ARGS: list[Any] = [["batch", "no such ticket", None], {}, {}]
MALFORMED = {
    "not JSON": "no message at all",
    "not text": b"\xff\xfe\x00".decode("latin-1"),
    "not an object": "[1, 2, 3]",
    "an empty object": "{}",
    "no base64": _message(_ARGS, body="%%%"),
    "no task": _message(_ARGS, task=None),
    "an unknown task": _message(_ARGS, task="curtsy.unknown"),
    "pickled": _message(_ARGS, **{"content-type": "application/x-python-serialize"}),
    "a body that is not Celery's": _message("text"),
    "too many arguments": _message([[1, 2, 3, 4, 5, 6], {}, {}]),
    "arguments of other types": _message([[None, 7, {}], {}, {}]),
}


def test_the_embedded_brokers_worker_outlives_malformed_messages(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    fleet.worker()
    for entry in MALFORMED.values():
        fleet.broker("LPUSH", QUEUE, entry)
    until(lambda: fleet.broker("LLEN", QUEUE) == 0)
    until(lambda: fleet.said("w1").count("message_rejected") >= 6)
    fleet.beat()
    crawl = fleet.submit(web.seeds)
    assert fleet.until_ended(crawl).pages == 8
    assert fleet.stop("w1") == 0  # the process that met them all


@pytest.mark.skipif(find() is None, reason="rabbitmq-server is not installed")
def test_so_does_that_of_rabbitmq(new_fleet: NewFleet, web: TinyWeb, tmp_path: Path) -> None:
    with RabbitMQ(tmp_path / "rabbitmq") as rabbit:
        fleet = new_fleet(web, broker_url=rabbit.url)
        fleet.worker()
        with Connection(rabbit.url) as connection, connection.Producer() as producer:
            for headers in ({}, {"task": "curtsy.unknown", "id": "x"}, {"task": "curtsy.shift", "id": "x"}):
                for body, kind in (
                    (b"\xff\x00", "application/json"),
                    (b"[1]", "text/odd"),
                    (b"{}", "application/json"),
                ):
                    producer.publish(body, routing_key=QUEUE, exchange="", headers=headers, content_type=kind,
                                     content_encoding="utf-8")  # fmt: skip
        fleet.beat()
        crawl = fleet.submit(web.seeds)
        assert fleet.until_ended(crawl).pages == 8
        assert fleet.said("w1").count("message_rejected") >= 3
        assert fleet.stop("w1") == 0
