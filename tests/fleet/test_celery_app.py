"""How Celery is set up: where its broker is, and what it is told."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from billiard import pool as processes

from curtsy.core.errors import SettingsError
from curtsy.core.settings import Settings
from curtsy.fleet import celery_app


def with_settings(monkeypatch: pytest.MonkeyPatch, **given: str) -> None:
    monkeypatch.setattr(celery_app, "the_settings", lambda: Settings(**given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "broker"),
    [
        ({"frontier_url": "redis://:pw@valkey:6379/2"}, "redis://:pw@valkey:6379/0"),
        ({"frontier_url": "rediss://valkey/2?ssl_ca_certs=/ca.pem"}, "rediss://valkey/0?ssl_ca_certs=/ca.pem"),
        ({"frontier_url": "unix:///run/valkey.sock?db=2"}, "redis+socket:///run/valkey.sock"),
        ({"frontier_url": "redis://v/2", "broker_url": "amqp://rabbit//"}, "amqp://rabbit//"),
        ({"frontier_url": "cluster://a,b,c", "broker_url": "redis://v/0"}, "redis://v/0"),
    ],
)
def test_the_broker_is_the_frontiers_server_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], broker: str
) -> None:
    with_settings(monkeypatch, **given)
    assert celery_app.broker_url() == broker


def test_a_cluster_cannot_be_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    with_settings(monkeypatch, frontier_url="cluster://a:7000,b:7000")
    with pytest.raises(SettingsError, match="broker_url"):
        celery_app.broker_url()


def test_messages_are_json_prefetch_is_one_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with_settings(monkeypatch, frontier_url="redis://v/2")
    told = celery_app._configuration()
    assert [queue.name for queue in told["task_queues"]] == [
        "fetch.high", "fetch.batch", "fetch.slow", "render", "inference", "default",
    ]  # fmt: skip
    assert told["accept_content"] == ["json"]
    assert told["task_ignore_result"]
    assert told["worker_prefetch_multiplier"] == 1
    limits = (
        told["task_soft_time_limit"],
        told["task_time_limit"],
        told["broker_transport_options"]["visibility_timeout"],
    )
    assert limits == (120, 150, 300)


@pytest.mark.parametrize(
    ("task", "args", "queue"),
    [
        ("curtsy.shift", ("high", "t", None), "fetch.high"),
        ("curtsy.shift", ("batch.0-7", "t", "0-7"), "fetch.batch.0-7"),
        ("curtsy.stage", ("extract", 1), "inference"),
        ("curtsy.stage", ("score", 1), "default"),
        ("curtsy.stage", ("webhook", 1), "default"),
    ],
)
def test_tasks_go_to_their_queues(task: str, args: tuple[object, ...], queue: str) -> None:
    assert celery_app._route(task, args, {}, {}) == {"queue": queue}


def test_shifts_are_acknowledged_early_and_stages_late(monkeypatch: pytest.MonkeyPatch) -> None:
    with_settings(monkeypatch, frontier_url="redis://v/2")  # the app reads its settings when a task is first looked at
    from curtsy.fleet import tasks

    assert not tasks.shift.acks_late
    assert tasks.stage.acks_late
    assert tasks.stage.reject_on_worker_lost


def test_a_child_whose_parent_does_not_listen_any_more_ends_in_seconds() -> None:
    child = processes.Worker.__new__(processes.Worker)
    child.on_ready_counter = SimpleNamespace(value=0)
    began = time.monotonic()
    assert not child._ensure_messages_consumed(completed=1)
    assert time.monotonic() - began < 5
