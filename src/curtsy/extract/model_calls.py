"""Questions to a model's server: from the cache, or by a call with one repair, within slots and a budget.

    Cache     answers by a digest of everything that determines them
    Question  a prompt, how its answer is read, and what it is about
    Calls     `answer` blocks; it may be called from several threads

The same question is not asked twice at the same time in one process: the second thread waits for the first one's
answer. The budget counts what the provider reports or what was sent, whichever is more.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, Literal, Protocol, TypeVar

from curtsy.core.claims import Usage
from curtsy.core.errors import MissingPart
from curtsy.core.observe import count
from curtsy.core.settings import Settings
from curtsy.extract import answers, endpoint, prompts
from curtsy.extract.budget import NO_TOPIC, Budget, Topic
from curtsy.extract.call_slots import CallSlots, NoSlot
from curtsy.extract.chunks import tokens_of
from curtsy.extract.endpoint import CallOptions, Endpoint, ModelFault, Reply
from curtsy.extract.prompts import Prompt

T = TypeVar("T")
Messages = list[dict[str, str]]
#: tokens that a server's template adds to a message
_TEMPLATE_TOKENS = 32
#: characters of an invalid answer that are sent back for repair
_SHOWN_CHARS = 800
#: the parameters that each server supports, as far as this process knows
_call_options: dict[tuple[str, str], CallOptions] = {}


class Cache(Protocol):
    def get(self, key: str) -> str | None: ...

    def put(self, key: str, answer: str) -> None: ...


class BatchQueue(Protocol):
    """Questions that can wait for a batch."""

    def want(self, key: str, body: dict[str, Any]) -> Literal["waits", "failed", "budget"]:
        """Queue a question, with its budget, unless it waits already. `failed`: its batch has no answer."""
        ...


class Memory:
    """A cache for the lifetime of its process."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        return self.answers.get(key)

    def put(self, key: str, answer: str) -> None:
        self.answers[key] = answer


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """One question. `read` raises ValueError for an answer that it cannot use."""

    prompt: Prompt
    #: JSON Schema of the answer
    form: Any
    #: of the cache
    key: str
    read: Callable[[Any], T]
    topic: Topic = NO_TOPIC


class Calls:
    """Calls to one model."""

    def __init__(
        self, settings: Settings, cache: Cache, budget: Budget, where: Callable[[], Endpoint], answer_tokens: int,
        queue: BatchQueue | None = None,
    ) -> None:  # fmt: skip
        self._settings, self._cache, self._budget, self._where = settings, cache, budget, where
        self._answer_tokens, self._queue = answer_tokens, queue
        self._local = settings.llm_kind == "local"
        folder = None if self._local else settings.data_dir
        self._slots = CallSlots(settings.llm_concurrency, settings.llm_provider_concurrency, folder)

    def answer(self, question: Question[T], deadline: float) -> tuple[T, Usage]:
        """Answer from the cache, or from the model with one repair. Answers that cannot be read are not cached."""
        with _alone(question.key):
            text = self._cache.get(question.key)
            kept = None if text is None else self._kept(question, text)
            if kept is None and text is None and self._queue is not None:
                self._wait_for_batch(question, self._queue)
            return kept if kept is not None else self._asked(question, deadline)

    def _wait_for_batch(self, question: Question[T], queue: BatchQueue) -> None:
        """Return only if the question becomes a single call."""
        messages = _messages(question.prompt)
        body = {
            "messages": messages, "form": question.form, "max_tokens": self._answer_tokens,
            "most": asdict(self.most(messages)), "schema": question.topic.schema, "fields": list(question.topic.fields),
        }  # fmt: skip
        outcome = queue.want(question.key, body)
        if outcome == "budget":
            raise _spent()
        if outcome == "waits":
            raise ModelFault("llm_batch", "the question waits for a batch")

    def _kept(self, question: Question[T], kept: str) -> tuple[T, Usage] | None:
        try:
            found = question.read(answers.parse(kept))
        except ValueError:
            count("llm_cache_damaged")
            return None
        used = Usage(cached=1)
        self._budget.settle(Usage(), used, question.topic)
        count("llm_cached")
        return found, used

    def _asked(self, question: Question[T], deadline: float) -> tuple[T, Usage]:
        messages = _messages(question.prompt)
        reply, usage = self._send(messages, question, deadline)
        try:
            reply, found = _read(reply, question, partly=self._local)
        except ValueError as problem:
            count("llm_repairs")
            messages += [
                {"role": "assistant", "content": reply.text[:_SHOWN_CHARS] or "(nothing)"},
                {"role": "user", "content": prompts.repair(str(problem))},
            ]
            reply, found, usage = self._repaired(messages, question, deadline, usage)
        self._cache.put(question.key, reply.text)
        return found, usage

    def _repaired(
        self, messages: Messages, question: Question[T], deadline: float, before: Usage
    ) -> tuple[Reply, T, Usage]:
        try:
            reply, used = self._send(messages, question, deadline)
        except ModelFault as fault:
            fault.usage = before + fault.usage
            raise
        usage = before + used
        try:
            return *_read(reply, question, partly=False), usage
        except ValueError as problem:
            unusable = self._unusable(reply, problem)
            unusable.usage = usage
            raise unusable from None

    def _unusable(self, reply: Reply, problem: ValueError) -> ModelFault:
        name = self._settings.llm_name
        if reply.finish == "length":
            # A repeated call would be cut off again, and cost again.
            advice = "Raise llm_answer_tokens, or lower llm_leaves_per_call."
            return ModelFault("llm_cut_off", f"{name} was cut off twice for its length. {advice}", again=False)
        return ModelFault("llm_garbage", f"{name} gave no usable answer in two attempts: {problem}")

    def _send(self, messages: Messages, question: Question[T], deadline: float) -> tuple[Reply, Usage]:
        """Call the server once, within a slot and the budget."""
        try:
            where = self._where()
            with self._slots.one(where.url, deadline):
                return self._within_budget(where, messages, question, deadline)
        except NoSlot:
            raise _late() from None
        except MissingPart as error:
            count("llm_missing")
            raise ModelFault("llm_missing", str(error), again=False) from error

    def _within_budget(
        self, where: Endpoint, messages: Messages, question: Question[T], deadline: float
    ) -> tuple[Reply, Usage]:
        timeout_s = min(self._settings.llm_timeout_s, deadline - time.monotonic())
        if timeout_s <= 0:
            raise _late()
        most = self.most(messages)
        if not self._budget.take(most):
            raise _spent()
        used = counted = Usage()
        try:
            options = _call_options.get((where.url, where.model), CallOptions())
            reply = endpoint.call(
                where, messages, question.form,
                max_tokens=self._answer_tokens, timeout_s=timeout_s, options=options,
            )  # fmt: skip
            _call_options[where.url, where.model] = reply.options
            used = usage_of(self._settings, 1, reply.prompt_tokens, reply.completion_tokens)
            counted = counted_usage(self._settings, messages, reply)
        except ModelFault as fault:
            if fault.cause in ("llm_timeout", "llm_garbage"):  # the server may have worked on it, and may charge for it
                used = counted = usage_of(self._settings, 1, sent_tokens(messages), 0)
            fault.usage = used
            count(fault.cause)
            raise
        finally:
            self._budget.settle(most, counted, question.topic)
        count("llm_calls")
        count("llm_tokens", used.prompt_tokens + used.completion_tokens)
        return reply, used

    def most(self, messages: Messages) -> Usage:
        """Return the maximum usage of a call: no token is shorter than a byte."""
        text = sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
        return usage_of(self._settings, 1, text + _TEMPLATE_TOKENS * len(messages), self._answer_tokens)


def counted_usage(settings: Settings, messages: Messages, reply: Reply) -> Usage:
    """Return what a budget counts: a provider that reports too little does not lift a limit."""
    sent, said = sent_tokens(messages), tokens_of(reply.text)
    return usage_of(settings, 1, max(reply.prompt_tokens, sent), max(reply.completion_tokens, said))


def usage_of(settings: Settings, calls: int, prompt_tokens: int, completion_tokens: int) -> Usage:
    """Return the usage with its cost."""
    price = prompt_tokens * settings.llm_price_in + completion_tokens * settings.llm_price_out
    cost = 0.0 if settings.llm_kind == "local" else price / 1e6
    return Usage(calls=calls, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cost=cost)


def _messages(prompt: Prompt) -> Messages:
    return [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]


def sent_tokens(messages: Sequence[dict[str, str]]) -> int:
    return sum(tokens_of(message["content"]) for message in messages)


def _read(reply: Reply, question: Question[T], *, partly: bool) -> tuple[Reply, T]:
    """Raise ValueError if it is unusable. `partly`: an answer that was cut off counts as far as it goes."""
    try:
        return reply, question.read(answers.parse(reply.text))
    except ValueError:
        partial = answers.partial(reply.text) if partly and reply.finish == "length" else None
        if partial is None:
            raise
        return replace(reply, text=json.dumps(partial)), question.read(partial)


def _late() -> ModelFault:
    return ModelFault(
        "llm_timeout", "the time limit for one record has passed; the answers so far are kept for the next try"
    )


def _spent() -> ModelFault:
    advice = (
        "the crawl has used its budget for language models: raise llm_max_tokens_per_crawl or "
        "llm_max_cost_per_crawl, then `curtsy failures replay --cause llm_budget`"
    )
    return ModelFault("llm_budget", advice, again=False)


#: question -> its lock, and how many threads use it
_asking: dict[str, tuple[threading.Lock, int]] = {}
_asking_lock = threading.Lock()


@contextmanager
def _alone(key: str) -> Iterator[None]:
    """No other thread asks the same question meanwhile."""
    with _asking_lock:
        lock, users = _asking.get(key, (threading.Lock(), 0))
        _asking[key] = lock, users + 1
    try:
        with lock:
            yield
    finally:
        with _asking_lock:
            lock, users = _asking[key]
            if users == 1:
                del _asking[key]
            else:
                _asking[key] = lock, users - 1
