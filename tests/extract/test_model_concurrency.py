"""Calls to models at the same time: never more than allowed, never the same question twice, caps kept."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer

from curtsy.core.settings import Settings
from curtsy.extract import record_claims
from curtsy.extract.call_slots import CallSlots, NoSlot
from curtsy.extract.llm import Caps, Memory, Model, ModelFault
from curtsy.grounding import schema as schemas

WORDS = ("founded", "revenue", "employees", "headquarters", "mission", "profit")
SCHEMA = schemas.inline({"title": "Firm", "type": "object", "properties": {word: {"type": "string"} for word in WORDS}})
TEXT = "".join(f"<p>Our {word} is a matter of record, and the {word} is stated here.</p>" for word in WORDS)


class Gauge:
    """Counts requests in progress; releases them when `wanted` have arrived, or after a while."""

    def __init__(self, server: ModelServer, wanted: int) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()
        self._enough = threading.Event()
        self._wanted = wanted
        server.answer = self.answer

    def answer(self, _: dict[str, Any]) -> Any:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now >= self._wanted:
                self._enough.set()
        self._enough.wait(5)
        # The request counts until its answer is on its way: a limit that is one too high is seen.
        time.sleep(0.05)
        with self._lock:
            self.now -= 1
        return {}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as started:
        yield started


def page(text: str = TEXT) -> record_claims.PageSources:
    return record_claims.sources_of(
        "p1", "https://a.example/", f"<html><body>{text}</body></html>".encode(), "text/html"
    )


def model(
    server: ModelServer, tmp_path: Path, cache: Memory | None = None, budget: Caps | None = None, **more: Any
) -> Model:
    given = {"llm_url": server.url, "llm_model": "m", "data_dir": tmp_path, "llm_leaves_per_call": 1, **more}
    return Model(Settings(**given), cache, budget)


def test_groups_of_fields_are_asked_at_the_same_time_up_to_the_limit(server: ModelServer, tmp_path: Path) -> None:
    gauge = Gauge(server, 3)
    model(server, tmp_path, llm_concurrency=3).ask(SCHEMA, SCHEMA.leaves, [page()])
    assert (gauge.most, len(server.asked)) == (3, len(WORDS))


def test_all_records_of_a_process_share_its_limit(server: ModelServer, tmp_path: Path) -> None:
    gauge = Gauge(server, 2)
    asked = [model(server, tmp_path, llm_concurrency=2) for _ in range(3)]
    threads = [threading.Thread(target=one.ask, args=(SCHEMA, SCHEMA.leaves, [page()])) for one in asked]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert gauge.most == 2


def test_a_provider_has_a_limit_of_its_own(server: ModelServer, tmp_path: Path) -> None:
    gauge = Gauge(server, 2)
    model(server, tmp_path, llm_concurrency=6, llm_provider_concurrency=2).ask(SCHEMA, SCHEMA.leaves, [page()])
    assert (gauge.most, len(server.asked)) == (2, len(WORDS))


def _hold(folder: Path, held: Any) -> None:
    with CallSlots(4, 1, folder).one("http://a.test/v1", time.monotonic() + 60):
        held.set()
        time.sleep(600)


def test_processes_of_one_folder_share_the_limit_of_a_provider_and_a_killed_one_gives_its_slot_back(
    tmp_path: Path,
) -> None:
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    holder = context.Process(target=_hold, args=(tmp_path, held))
    holder.start()
    try:
        assert held.wait(120)
        slots = CallSlots(4, 1, tmp_path)
        with pytest.raises(NoSlot), slots.one("http://a.test/v1", time.monotonic() + 0.2):
            pass
        with slots.one("http://b.test/v1", time.monotonic() + 0.2):
            pass  # another provider
        os.kill(holder.pid or 0, 9)
        holder.join(60)
        with slots.one("http://a.test/v1", time.monotonic() + 60):
            pass
    finally:
        holder.kill()


def test_the_same_question_at_the_same_time_is_paid_once(server: ModelServer, tmp_path: Path) -> None:
    cache, budget = Memory(), Caps()
    leaf = SCHEMA.leaves[:1]
    entered = threading.Barrier(4)
    server.answer = lambda _: {}

    def ask() -> None:
        entered.wait(60)
        model(server, tmp_path, cache, budget).ask(SCHEMA, leaf, [page()])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert len(server.asked) == 1
    assert (budget.spent.calls, budget.spent.cached) == (1, 3)


def test_a_fault_ends_the_other_questions_and_keeps_their_answers(server: ModelServer, tmp_path: Path) -> None:
    quote = "Our founded is a matter of record, and the founded is stated here."
    server.script = [{"founded": {"quote": quote, "value": quote}}, 403]
    with pytest.raises(ModelFault) as caught:
        model(server, tmp_path, llm_concurrency=1).ask(SCHEMA, SCHEMA.leaves, [page()])
    fault = caught.value
    assert [claim.path for claim in fault.claims] == ["/founded"]
    assert fault.unanswered == tuple(f"/{word}" for word in WORDS[1:])
    assert len(server.asked) == 2


def test_a_cap_holds_with_calls_at_the_same_time(server: ModelServer, tmp_path: Path) -> None:
    server.usage = {"prompt_tokens": 1, "completion_tokens": 1}  # what a provider says does not lift the cap
    budget = Caps(max_tokens=6_000)
    asked = model(server, tmp_path, None, budget, llm_answer_tokens=100)
    pages = [page(f"{TEXT}<p>Number {number} of our founded record.</p>") for number in range(100)]
    with pytest.raises(ModelFault) as caught:
        [asked.ask(SCHEMA, SCHEMA.leaves, [one]) for one in pages]
    assert caught.value.cause == "llm_budget"
    sent = sum(len(message["content"]) for body in server.asked for message in body["messages"])
    assert sent / 4 < 6_000, "at some four characters per token"
    assert budget.spent.prompt_tokens + budget.spent.completion_tokens <= 6_000
