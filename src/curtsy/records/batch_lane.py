"""The batch lane: questions that can wait go to the server's batch API, and their answers into the cache.

A stage that needs an answer queues its question and waits. When the answer has arrived, the stage runs again and finds
it in the cache. So nothing is merged by hand, and a kill at any point loses and repeats nothing:

    1. a transaction takes the budget and queues the question
    2. a transaction makes a batch of queued questions
    3. the file is uploaded (free: after a kill it is uploaded again)
    4. a transaction says that the batch is about to be created; then it is created
    5. a transaction keeps its id. After a kill between 4 and 5, the server's list is searched for the batch's token;
       only if it is not there after the time limit of a call is the batch created again
    6. for each result, a transaction puts the answer into the cache, settles the budget and deletes the question

One process at a time runs `step`.
"""

from __future__ import annotations

from typing import Any

from curtsy.core import clock
from curtsy.core.claims import Usage
from curtsy.core.errors import Unavailable
from curtsy.core.failpoints import point
from curtsy.core.model import new_id
from curtsy.core.observe import count, log
from curtsy.core.settings import Settings
from curtsy.extract import answers, batch_api, llm
from curtsy.extract.answers import NotJson
from curtsy.extract.batch_api import Result
from curtsy.extract.endpoint import CallOptions, Endpoint, ModelFault, request_body
from curtsy.extract.model_calls import counted_usage
from curtsy.store import batches, llm_cache
from curtsy.store.batches import SentBatch, WaitingQuestion
from curtsy.store.engine import Store

#: the server promises results within this time; a batch without them is canceled
WINDOW_MS = 24 * 3600 * 1000
_LOCK_S = 0.05
#: longer than any call: a request that was in flight at a kill has ended
_GRACE_MS = 2_000


def step(store: Store, settings: Settings, now_ms: int | None = None) -> None:
    """Send what waits, look for results, and merge them. Does nothing if another process does it."""
    if not settings.llm_batch or settings.llm_kind != "endpoint":
        return
    try:
        with store.lock("llm_batches", _LOCK_S):
            _Lane(store, settings, now_ms or clock.now_ms()).step()
    except Unavailable:
        return


class _Lane:
    def __init__(self, store: Store, settings: Settings, now_ms: int) -> None:
        self._store, self._settings, self._now = store, settings, now_ms
        self._where: Endpoint = llm.endpoint_of(settings)
        self._timeout_s = settings.llm_timeout_s

    def step(self) -> None:
        self._begin()
        with self._store.read() as tx:
            known = batches.all_batches(tx)
        for batch in known:
            try:
                self._advance(batch)
            except ModelFault as fault:
                log("batch_failed", level="warning", cause=fault.cause, detail=fault.detail)
                if not fault.again and batch.batch is None:
                    self._give_up(batch)  # the server refuses batches: nothing was created

    def _begin(self) -> None:
        """Make a batch if enough questions wait, or the first one has waited long enough."""
        with self._store.read() as tx:
            number, since_ms = batches.queued(tx)
        waited = since_ms is not None and self._now - since_ms >= self._settings.llm_batch_wait_s * 1000
        if number >= self._settings.llm_batch_size or waited:
            self._store.run(batches.begin, new_id(), self._settings.llm_batch_size, self._now)
            point("batch.begun")

    def _advance(self, batch: SentBatch) -> None:
        if batch.state == "new":
            self._create(self._uploaded(batch))
        elif batch.state == "creating":
            self._find_or_create(batch)
        elif self._now - batch.looked_ms >= self._settings.llm_batch_poll_s * 1000:
            self._look(batch)

    def _uploaded(self, batch: SentBatch) -> SentBatch:
        with self._store.read() as tx:
            questions = batches.questions_of(tx, batch.n)
        lines = [_line(self._where, one) for one in questions]
        file = batch_api.upload(self._where, batch.token, lines, self._timeout_s)
        point("batch.uploaded")
        return batch._replace(file=file)

    def _create(self, batch: SentBatch) -> None:
        """Creating the batch costs money, so the store records before that it may exist."""
        self._store.run(batches.advance, batch.n, clock.now_ms(), {"state": "creating", "file": batch.file})
        point("batch.creating")
        made = batch_api.create(self._where, batch.token, batch.file or "", self._timeout_s)
        point("batch.created")
        self._keep(batch, made.id)

    def _find_or_create(self, batch: SentBatch) -> None:
        known = batch_api.find(self._where, batch.token, self._timeout_s)
        if known is not None:
            self._keep(batch, known.id)
        elif self._now - batch.at_ms >= self._timeout_s * 1000 + _GRACE_MS:
            self._create(batch)

    def _keep(self, batch: SentBatch, id: str) -> None:
        self._store.run(batches.advance, batch.n, self._now, {"state": "running", "batch": id})
        count("llm_batches")
        point("batch.kept")

    def _look(self, batch: SentBatch) -> None:
        self._store.run(batches.looked, batch.n, self._now)
        found = batch_api.look(self._where, batch.batch or "", self._timeout_s)
        if not found.is_over and self._now - batch.made_ms > WINDOW_MS:
            found = batch_api.cancel(self._where, found.id, self._timeout_s)
        if not found.is_over:
            return
        if found.output_file is not None:
            for result in batch_api.results(self._where, found.output_file, self._timeout_s):
                self._merge(result)
        self._give_up(batch)

    def _merge(self, result: Result) -> None:
        self._store.run(self._merged, result)
        point("batch.merged")

    def _merged(self, tx: Any, result: Result) -> None:
        """A question without a usable answer stays, and becomes a single call."""
        question = batches.question(tx, result.key)
        if question is None or question.state != "sent" or result.reply is None:
            return
        used = counted_usage(self._settings, question.body["messages"], result.reply)
        self._settle(tx, question, used)
        batches.wake(tx, [(question.crawl, question.subject)], clock.now_ms())
        if result.reply.finish == "length" or not _is_json(result.reply.text):
            batches.fail(tx, question.key)
            return
        llm_cache.put(tx, question.key, result.reply.text, question.crawl, question.subject, self._now)
        batches.drop(tx, question.key)

    def _give_up(self, batch: SentBatch) -> None:
        """Questions without a result become single calls; the batch has ended."""
        self._store.run(self._given_up, batch)
        point("batch.ended")

    def _given_up(self, tx: Any, batch: SentBatch) -> None:
        rest = batches.questions_of(tx, batch.n)
        for question in rest:
            if batches.fail(tx, question.key):
                self._settle(tx, question, Usage())
        batches.wake(tx, [(one.crawl, one.subject) for one in rest], clock.now_ms())
        batches.ended(tx, batch.n)

    def _settle(self, tx: Any, question: WaitingQuestion, used: Usage) -> None:
        most = Usage(**question.body["most"])
        llm_cache.spend(tx, question.crawl, llm.less(used, most))
        if used != Usage():
            llm_cache.spend_on(tx, question.crawl, question.body["schema"], question.body["fields"], used)


def _line(where: Endpoint, question: WaitingQuestion) -> dict[str, Any]:
    """A request of the batch file. Batches are for servers that support JSON Schemas."""
    body = question.body
    sent = request_body(where, body["messages"], body["form"], body["max_tokens"], CallOptions())
    return {"custom_id": question.key, "method": "POST", "url": "/v1/chat/completions", "body": sent}


def _is_json(text: str) -> bool:
    try:
        answers.parse(text)
    except NotJson:
        return False
    return True
