"""A crawl's language model, with its answer cache and budget in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from curtsy.core import clock
from curtsy.core.claims import Extraction, Usage
from curtsy.core.model import Crawl
from curtsy.core.settings import Settings
from curtsy.extract import llm
from curtsy.extract.budget import NO_TOPIC, Topic
from curtsy.extract.verification import Check, Opinion, Statement
from curtsy.grounding.page_schema import extractors
from curtsy.grounding.schema import Leaf, Schema
from curtsy.services import local_model
from curtsy.store import batches, llm_cache
from curtsy.store.engine import Store


class StoredCache:
    """Answers in the store; they are deleted with the page or site that they concern."""

    def __init__(self, store: Store, crawl: int, subject: str) -> None:
        self._store, self._crawl, self._subject = store, crawl, subject

    def get(self, key: str) -> str | None:
        with self._store.read() as tx:
            return llm_cache.get(tx, key)

    def put(self, key: str, answer: str) -> None:
        self._store.run(llm_cache.put, key, answer, self._crawl, self._subject, clock.now_ms())


class StoredBudget:
    """What a crawl has spent, over all its processes."""

    def __init__(self, store: Store, crawl: int, settings: Settings) -> None:
        self._store, self._crawl, self._settings = store, crawl, settings

    def take(self, most: Usage) -> bool:
        return self._store.run(self.take_in, most)

    def take_in(self, tx: Any, most: Usage) -> bool:
        """The same as `take`, within a transaction."""
        llm_cache.spend(tx, self._crawl, most)
        spent, settings = llm_cache.spent(tx, self._crawl), self._settings
        if llm.exceeds(spent, settings.llm_max_tokens_per_crawl, settings.llm_max_cost_per_crawl):
            llm_cache.spend(tx, self._crawl, llm.less(type(most)(), most))
            return False
        return True

    def settle(self, most: Usage, used: Usage, topic: Topic = NO_TOPIC) -> None:
        self._store.run(self._settle, most, used, topic)

    def _settle(self, tx: Any, most: Usage, used: Usage, topic: Topic) -> None:
        llm_cache.spend(tx, self._crawl, llm.less(used, most))
        if used != Usage() and topic.fields:
            llm_cache.spend_on(tx, self._crawl, topic.schema, topic.fields, used)


class StoredQueue:
    """Questions about a page or site that wait for a batch (batch_lane.py)."""

    def __init__(self, store: Store, crawl: int, subject: str, settings: Settings) -> None:
        self._store, self._crawl, self._subject = store, crawl, subject
        self._budget = StoredBudget(store, crawl, settings)

    def want(self, key: str, body: dict[str, Any]) -> Literal["waits", "failed", "budget"]:
        return self._store.run(self._want, key, body)

    def _want(self, tx: Any, key: str, body: dict[str, Any]) -> Literal["waits", "failed", "budget"]:
        """The budget is taken where the question is queued: a kill leaves both or neither."""
        known = batches.question(tx, key)
        if known is not None and known.state == "failed":
            batches.drop(tx, key)
            return "failed"
        if known is None:
            if not self._budget.take_in(tx, Usage(**body["most"])):
                return "budget"
            batches.put(tx, key, self._crawl, self._subject, body, clock.now_ms())
        return "waits"


class MissingModel:
    """The model of a crawl that this process cannot use: every question to it fails, and nothing else."""

    def __init__(self, why: str) -> None:
        self._why = why

    def ask(self, _schema: Schema, leaves: Sequence[Leaf], _pages: Sequence[llm.Page]) -> Extraction:
        fault = self._fault()
        fault.unanswered = tuple(leaf.path for leaf in leaves)
        raise fault

    def verify(
        self, _check: Check, _schema: Schema, _subject: str, _statements: Sequence[Statement]
    ) -> tuple[dict[str, Opinion], Usage]:
        raise self._fault()

    def question(self, _question: str, _texts: Sequence[str]) -> llm.Judgment:
        raise self._fault()

    def _fault(self) -> llm.ModelFault:
        return llm.ModelFault("llm_missing", self._why, again=False)


def second_model_of(store: Store, settings: Settings, crawl: Crawl, subject: str) -> llm.Model | MissingModel | None:
    """Return the model that judges attribution; None if neither the crawl nor the settings name one."""
    name = crawl.judge_model or settings.llm_judge_model
    if name in (None, "none") or (crawl.llm or settings.llm_kind) == "none":
        return None
    second: dict[str, str | bool | None] = {"llm": "endpoint", "llm_model": name}
    if settings.llm_judge_url is not None:  # another server gets its own key only
        second |= {"llm_url": settings.llm_judge_url, "llm_api_key": settings.llm_judge_api_key}
    second["llm_batch"] = False  # batches go to the first model's server
    return model_of(store, settings.model_copy(update=second), replace(crawl, llm="endpoint"), subject)


def model_of(store: Store, settings: Settings, crawl: Crawl, subject: str) -> llm.Model | MissingModel | None:
    """Return the model of the crawl's options, or else of the settings; None if neither names one."""
    kind = crawl.llm or settings.llm_kind
    if kind == "none":
        return None
    wanted = settings if settings.llm_kind == kind else settings.model_copy(update={"llm": kind})
    if kind == "endpoint" and not (wanted.llm_url and wanted.llm_model):
        return MissingModel("The crawl uses a language model at an endpoint. Set llm_url and llm_model.")
    cache, budget = StoredCache(store, crawl.n, subject), StoredBudget(store, crawl.n, wanted)
    queue = StoredQueue(store, crawl.n, subject, wanted) if wanted.llm_batch else None
    return local_model.model_of(wanted, cache, budget, queue)


def check_installed(settings: Settings, crawl: Crawl) -> None:
    """A crawl that needs the local model does not start without it. Records that a function makes need none."""
    if crawl.schema not in extractors and (crawl.llm or settings.llm_kind) == "local":
        local_model.check_installed()
