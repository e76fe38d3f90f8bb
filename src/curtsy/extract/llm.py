"""A language model as the last rung: it is called only for missing values, and its output is never trusted.

    Model       `ask` for the leaves of a schema, `question` for a rubric; blocks, so call it in a thread
    Cache       answers by a digest of everything that determines them: content, schema, leaves, model, prompts
    Budget      what a crawl may spend: the maximum is taken before a call, and settled with the actual usage after it
    ModelFault  no usable answer; the stage decides about retries

Every value comes with a quote. Both are only claims: grounding checks that the quote is in the page and that the value
follows from it.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from curtsy.core.claims import Claim, Extraction, Rung, Source, Usage
from curtsy.core.errors import MissingPart
from curtsy.core.observe import count
from curtsy.core.settings import Settings
from curtsy.extract import answer_schema, answers, endpoint, prompts
from curtsy.extract.answer_schema import Style
from curtsy.extract.chunks import relates, sentences, tokens_of
from curtsy.extract.endpoint import CallOptions, Endpoint, ModelFault, Reply
from curtsy.grounding.schema import Leaf, Schema

__all__ = ["Budget", "Cache", "Caps", "Endpoint", "Judgment", "Memory", "Model", "ModelFault", "prompt_texts"]

T = TypeVar("T")
#: tokens that a server's template adds to a message
_TEMPLATE_TOKENS = 32
#: of a stage's lease, so that no other worker begins the same row
_SHARE_OF_LEASE = 0.75
#: characters of an invalid answer that are sent back for repair
_SHOWN_CHARS = 800
#: a small model answers one field at a time, from a short text, with a short answer
_LOCAL_CONTEXT_TOKENS, _LOCAL_ANSWER_TOKENS, _LOCAL_LEAVES = 250, 160, 1

prompt_texts = prompts.prompt_texts
#: the parameters that each server supports, as far as this process knows
_call_options: dict[tuple[str, str], CallOptions] = {}


class Cache(Protocol):
    def get(self, key: str) -> str | None: ...

    def put(self, key: str, answer: str) -> None: ...


class Budget(Protocol):
    """What a crawl may spend, over all its processes. Costs are in the currency of the prices."""

    def take(self, most: Usage) -> bool:
        """Count the maximum usage of a call; return False, and count nothing, if it exceeds a limit."""
        ...

    def settle(self, most: Usage, used: Usage) -> None:
        """Replace the counted maximum by the actual usage."""
        ...


class Page(Protocol):
    """Of a page, the model sees the main content; a value's evidence may be anywhere in its text."""

    @property
    def text(self) -> Source: ...

    @property
    def shown(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Judgment:
    """A model's answer to a rubric's question. The quote counts only after it was found in the evidence."""

    #: 0 to 1
    score: float
    reason: str
    quote: str | None
    usage: Usage


class Memory:
    """A cache for the lifetime of its process."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        return self.answers.get(key)

    def put(self, key: str, answer: str) -> None:
        self.answers[key] = answer


class Caps:
    """A budget within one process. None: no limit."""

    def __init__(self, max_tokens: int | None = None, max_cost: float | None = None) -> None:
        self.max_tokens, self.max_cost = max_tokens, max_cost
        self.spent = Usage()
        self._lock = threading.Lock()

    def take(self, most: Usage) -> bool:
        with self._lock:
            after = self.spent + most
            if exceeds(after, self.max_tokens, self.max_cost):
                return False
            self.spent = after
            return True

    def settle(self, most: Usage, used: Usage) -> None:
        with self._lock:
            self.spent = self.spent + less(used, most)


def exceeds(spent: Usage, max_tokens: int | None, max_cost: float | None) -> bool:
    """Return whether the usage exceeds a limit."""
    tokens = spent.prompt_tokens + spent.completion_tokens
    return (max_tokens is not None and tokens > max_tokens) or (max_cost is not None and spent.cost > max_cost)


def less(used: Usage, most: Usage) -> Usage:
    """Return the usage to add where `most` was counted and `used` is the actual usage."""
    return used + Usage(
        calls=-most.calls,
        cached=-most.cached,
        prompt_tokens=-most.prompt_tokens,
        completion_tokens=-most.completion_tokens,
        cost=-most.cost,
    )


class Model:
    """`where` returns the address of the model at each call: a local model may have been restarted."""

    def __init__(
        self,
        settings: Settings,
        cache: Cache | None = None,
        budget: Budget | None = None,
        where: Callable[[], Endpoint] | None = None,
    ) -> None:
        self._settings = settings
        self._cache = cache if cache is not None else Memory()
        self._budget = budget if budget is not None else Caps()
        self._where = where or (lambda: endpoint_of(settings))
        self.local = settings.llm_kind == "local"
        self.style = Style.VALUE if self.local else Style.QUOTE
        self.name = settings.llm_name

    def ask(self, schema: Schema, leaves: Sequence[Leaf], pages: Sequence[Page]) -> Extraction:
        """Return claims for the leaves from the texts of the pages. Answers before a fault stay in the cache."""
        deadline = time.monotonic() + _SHARE_OF_LEASE * min(
            self._settings.stage_lease_s, self._settings.task_soft_limit_s
        )
        claims: list[Claim] = []
        usage = Usage()
        texts = [page.shown for page in pages]
        sources = [page.text for page in pages]
        asked = list(groups(leaves, self._leaves_per_call))
        for at, group in enumerate(asked):
            try:
                found, used = self._ask(schema, group, texts, sources, deadline)
            except ModelFault as fault:
                fault.usage, fault.claims = usage + fault.usage, tuple(claims)
                fault.unanswered = tuple(leaf.path for some in asked[at:] for leaf in some)
                raise
            usage += used
            claims += found
        return Extraction(claims=tuple(claims), usage=usage)

    def question(self, question: str, texts: Sequence[str]) -> Judgment:
        """Return how far the texts answer the question with yes."""
        prompt = prompts.judgment(question, texts, self._context_tokens)
        if not prompt.content.strip():
            return Judgment(0.0, "nothing is stated", None, Usage())
        key = self._key("question", question, prompt.content)
        form = answers.question_form(bounded=self.local)
        deadline = time.monotonic() + self._settings.llm_timeout_s
        said, usage = self._answer(prompt, form, key, answers.judgment, deadline)
        score, reason, quote = said
        return Judgment(score, reason, quote, usage)

    def _ask(
        self, schema: Schema, leaves: Sequence[Leaf], texts: Sequence[str], sources: Sequence[Source], deadline: float
    ) -> tuple[list[Claim], Usage]:
        layouts = [source.layout for source in sources]
        prompt = prompts.extraction(schema, leaves, texts, self._context_tokens, self.style, layouts)
        if prompt is None:
            return [], Usage()
        form = answer_schema.schema_of(leaves, self.style, bounded=self.local)
        key = self._key(schema.hash, *(leaf.path for leaf in leaves), prompt.content)
        found, usage = self._answer(prompt, form, key, lambda said: answer_schema.read(said, leaves), deadline)
        if self.style is Style.VALUE:
            return list(_located(schema, found, sources)), usage
        return list(_claims(found, sources)), usage

    def _answer(
        self, prompt: prompts.Prompt, form: Any, key: str, read: Callable[[Any], T], deadline: float
    ) -> tuple[T, Usage]:
        """Answer from the cache, or from the model with one repair. Answers that cannot be read are not cached."""
        if (kept := self._cache.get(key)) is not None:
            try:
                found = read(answers.parse(kept))
            except ValueError:
                count("llm_cache_damaged")
            else:
                self._budget.settle(Usage(), Usage(cached=1))
                count("llm_cached")
                return found, Usage(cached=1)
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        reply, usage = self._send(messages, form, deadline)
        try:
            reply, found = self._read(reply, read, cut_off=self.local)
        except ValueError as problem:
            count("llm_repairs")
            messages += [
                {"role": "assistant", "content": reply.text[:_SHOWN_CHARS] or "(nothing)"},
                {"role": "user", "content": prompts.repair(str(problem))},
            ]
            reply, found, usage = self._repaired(messages, form, read, deadline, usage)
        self._cache.put(key, reply.text)
        return found, usage

    def _read(self, reply: Reply, read: Callable[[Any], T], *, cut_off: bool) -> tuple[Reply, T]:
        """Raise ValueError if it is unusable. An answer that was cut off for its length counts as far as it goes."""
        try:
            return reply, read(answers.parse(reply.text))
        except ValueError:
            partial = answers.partial(reply.text) if cut_off and reply.finish == "length" else None
            if partial is None:
                raise
            return replace(reply, text=json.dumps(partial)), read(partial)

    def _repaired(
        self, messages: list[dict[str, str]], form: Any, read: Callable[[Any], T], deadline: float, before: Usage
    ) -> tuple[Reply, T, Usage]:
        try:
            reply, used = self._send(messages, form, deadline)
        except ModelFault as fault:
            fault.usage = before + fault.usage
            raise
        usage = before + used
        try:
            return *self._read(reply, read, cut_off=True), usage
        except ValueError as problem:
            garbage = ModelFault("llm_garbage", f"{self.name} gave no usable answer in two attempts: {problem}")
            garbage.usage = usage
            raise garbage from None

    def _send(self, messages: list[dict[str, str]], form: Any, deadline: float) -> tuple[Reply, Usage]:
        settings = self._settings
        timeout_s = min(settings.llm_timeout_s, deadline - time.monotonic())
        if timeout_s <= 0:
            raise ModelFault(
                "llm_timeout", "the time limit for one record has passed; the answers so far are kept for the next try"
            )
        text = sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
        # No token is shorter than a byte, so this is the maximum.
        most = self._usage(1, text + _TEMPLATE_TOKENS * len(messages), self._answer_tokens)
        if not self._budget.take(most):
            spent = (
                "the crawl has used its budget for language models: raise llm_max_tokens_per_crawl or "
                "llm_max_cost_per_crawl, then `curtsy failures replay --cause llm_budget`"
            )
            raise ModelFault("llm_budget", spent, again=False)
        used = Usage()
        try:
            where = self._where()
            options = _call_options.get((where.url, where.model), CallOptions())
            reply = endpoint.call(
                where, messages, form,
                max_tokens=self._answer_tokens, timeout_s=timeout_s, options=options,
            )  # fmt: skip
            _call_options[where.url, where.model] = reply.options
            used = self._usage(1, reply.prompt_tokens, reply.completion_tokens)
        except MissingPart as error:
            count("llm_missing")
            raise ModelFault("llm_missing", str(error), again=False) from error
        except ModelFault as fault:
            if fault.cause in ("llm_timeout", "llm_garbage"):  # the server may have worked on it, and may charge for it
                used = self._usage(1, sum(tokens_of(message["content"]) for message in messages), 0)
            fault.usage = used
            count(fault.cause)
            raise
        finally:
            self._budget.settle(most, used)
        count("llm_calls")
        count("llm_tokens", used.prompt_tokens + used.completion_tokens)
        return reply, used

    def _usage(self, calls: int, prompt_tokens: int, completion_tokens: int) -> Usage:
        price_in, price_out = self._settings.llm_price_in, self._settings.llm_price_out
        cost = 0.0 if self.local else (prompt_tokens * price_in + completion_tokens * price_out) / 1e6
        return Usage(calls=calls, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cost=cost)

    def _key(self, *parts: str) -> str:
        determining = [*parts, self.name, prompts.version(), self.style, str(self._answer_tokens)]
        return hashlib.sha256("\0".join(determining).encode("utf-8", "replace")).hexdigest()

    @property
    def _context_tokens(self) -> int:
        asked = self._settings.llm_context_tokens
        return min(asked, _LOCAL_CONTEXT_TOKENS) if self.local else asked

    @property
    def _answer_tokens(self) -> int:
        asked = self._settings.llm_answer_tokens
        return min(asked, _LOCAL_ANSWER_TOKENS) if self.local else asked

    @property
    def _leaves_per_call(self) -> int:
        return _LOCAL_LEAVES if self.local else self._settings.llm_leaves_per_call


def endpoint_of(settings: Settings) -> Endpoint:
    """Return the server that the settings name."""
    return Endpoint((settings.llm_url or "").rstrip("/"), settings.llm_name, settings.llm_api_key)


def groups(leaves: Sequence[Leaf], most: int) -> Iterator[list[Leaf]]:
    """Yield groups of leaves for one call; leaves of one list's items stay together."""
    found: list[Leaf] = []
    families: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        families.setdefault(leaf.path.partition("/*")[0] if leaf.many else leaf.path, []).append(leaf)
    for family in families.values():
        if found and len(found) + len(family) > most:
            yield found
            found = []
        found += family
    if found:
        yield found


def _claims(found: Sequence[answer_schema.Found], sources: Sequence[Source]) -> Iterator[Claim]:
    flat = [_flat(source.text) for source in sources]
    for one in found:
        quote = None if one.quote is None else _as_written(one.quote, flat)
        words = [_flat(quote)] if quote else []
        words += [_flat(str(one.value))]
        home = next((at for word in words for at, text in enumerate(flat) if word and word in text), 0)
        yield Claim(path=one.path, value=one.value, rung=Rung.LLM, source=sources[home], quote=quote)


def _located(schema: Schema, found: Sequence[answer_schema.Found], sources: Sequence[Source]) -> Iterator[Claim]:
    """Give each value without a quote the sentence that contains it and can be about its leaf. Drop a value that occurs
    only in other sentences: its support would be accidental. Keep a value that does not occur at all: grounding
    reports it as unsupported."""
    for one in found:
        leaf = schema.leaf_for(one.path)
        word = re.compile(rf"(?<!\w){re.escape(_flat(str(one.value)))}(?!\w)")
        homes = [
            (source, sentence)
            for source in sources
            for sentence in sentences(source.text)
            if word.search(_flat(sentence))
        ]
        related = [(source, sentence) for source, sentence in homes if relates(leaf, sentence)]
        if homes and not related:
            count("llm_unrelated")
            continue
        source, quote = related[0] if related else (sources[0], None)
        yield Claim(path=one.path, value=one.value, rung=Rung.LLM, source=source, quote=quote)


def _as_written(quote: str, flat: Sequence[str]) -> str:
    """Restore characters that were replaced for the model, unless the page has them."""
    return quote if any(_flat(quote) in text for text in flat) else prompts.unplain(quote)


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()
