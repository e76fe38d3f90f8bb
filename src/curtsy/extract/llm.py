"""A language model as the last rung of the ladder: it is asked only for what is still missing, and believed nothing.

    Model       asks: `ask` for the leaves of a schema, `question` for a rubric; blocks, so call it from a thread
    Cache       answers by a digest of all that decides them: content, schema, leaves, model, wording
    Budget      what a crawl may spend: taken before a call at its most, settled afterwards by what was used
    ModelFault  no usable answer; the stage decides when to try again

Every value comes with a quote. They are claims, no more: `ground` looks whether the quote stands in the page and the
value follows from it.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from curtsy.core.claims import Claim, Extraction, Rung, Source, Usage
from curtsy.core.errors import MissingPart
from curtsy.core.observe import count
from curtsy.extract import answer_schema, answers, endpoint, prompts
from curtsy.extract.answer_schema import Style
from curtsy.extract.chunks import relates, sentences, tokens_of
from curtsy.extract.endpoint import Endpoint, Manner, ModelFault, Reply

if TYPE_CHECKING:
    from curtsy.core.settings import Settings
    from curtsy.grounding.schema import Leaf, Schema

__all__ = ["Budget", "Cache", "Caps", "Endpoint", "Judgement", "Memory", "Model", "ModelFault", "prompt_texts"]

T = TypeVar("T")
#: tokens that a server's template puts around a message
_TEMPLATE_TOKENS = 32
#: of a stage's lease, so that nobody else begins the same meanwhile
_SHARE_OF_LEASE = 0.75
#: of a bad answer, sent back with the request to mend it
_SHOWN_CHARS = 800
#: a small model answers one field at a time, from little text, shortly
_LOCAL_CONTEXT_TOKENS, _LOCAL_ANSWER_TOKENS, _LOCAL_LEAVES = 250, 160, 1

prompt_texts = prompts.prompt_texts
#: how each server wants to be asked, as this process has learnt
_manners: dict[tuple[str, str], Manner] = {}


class Cache(Protocol):
    def get(self, key: str) -> str | None: ...

    def put(self, key: str, answer: str) -> None: ...


class Budget(Protocol):
    """What a crawl may spend, over all its processes. Costs are in the currency of the prices."""

    def take(self, most: Usage) -> bool:
        """Count the most that a call can take; False, and nothing counted, if a cap would be passed."""
        ...

    def settle(self, most: Usage, used: Usage) -> None:
        """Count what was used instead of what was taken."""
        ...


class Page(Protocol):
    """Of the pages of a ladder only their text is asked about."""

    @property
    def text(self) -> Source: ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """A model's answer to a rubric's question. The quote is none until it was found in the evidence."""

    #: 0 to 1
    score: float
    reason: str
    quote: str | None
    usage: Usage


class Memory:
    """A cache as long as its process lives."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        return self.answers.get(key)

    def put(self, key: str, answer: str) -> None:
        self.answers[key] = answer


class Caps:
    """A budget within one process. None: no cap."""

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
    """For every budget: whether that is more than allowed."""
    tokens = spent.prompt_tokens + spent.completion_tokens
    return (max_tokens is not None and tokens > max_tokens) or (max_cost is not None and spent.cost > max_cost)


def less(used: Usage, most: Usage) -> Usage:
    """What must be added where `most` was counted and `used` is the truth."""
    return used + Usage(
        calls=-most.calls,
        cached=-most.cached,
        prompt_tokens=-most.prompt_tokens,
        completion_tokens=-most.completion_tokens,
        cost=-most.cost,
    )


class Model:
    """`where` says at each call where the model answers: a local one may have been started again meanwhile."""

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
        """Claims for those leaves from the texts of those pages. What was answered before a fault is in the cache."""
        deadline = time.monotonic() + _SHARE_OF_LEASE * min(
            self._settings.stage_lease_s, self._settings.task_soft_limit_s
        )
        claims: list[Claim] = []
        usage = Usage()
        sources = [page.text for page in pages]
        for group in groups(leaves, self._leaves_per_call):
            try:
                found, used = self._ask(schema, group, sources, deadline)
            except ModelFault as fault:
                fault.usage = usage + fault.usage
                raise
            usage += used
            claims += found
        return Extraction(claims=tuple(claims), usage=usage)

    def question(self, question: str, texts: Sequence[str]) -> Judgement:
        """How far those texts answer the question with yes."""
        prompt = prompts.judgement(question, texts, self._context_tokens)
        if not prompt.content.strip():
            return Judgement(0.0, "nothing is stated", None, Usage())
        key = self._key("question", question, prompt.content)
        form = answers.question_form(bounded=self.local)
        deadline = time.monotonic() + self._settings.llm_timeout_s
        said, usage = self._answer(prompt, form, key, answers.judgement, deadline)
        score, reason, quote = said
        return Judgement(score, reason, quote, usage)

    def _ask(
        self, schema: Schema, leaves: Sequence[Leaf], sources: Sequence[Source], deadline: float
    ) -> tuple[list[Claim], Usage]:
        texts = [source.text for source in sources]
        prompt = prompts.extraction(schema, leaves, texts, self._context_tokens, self.style)
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
        """From the cache, or from the model: with one repair, and none of what does not read is kept."""
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
        """ValueError if it is of no use. One that was cut off for its length may count as far as it goes."""
        try:
            return reply, read(answers.parse(reply.text))
        except ValueError:
            begun = answers.begun(reply.text) if cut_off and reply.finish == "length" else None
            if begun is None:
                raise
            return replace(reply, text=json.dumps(begun)), read(begun)

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
            garbage = ModelFault("llm_garbage", f"{self.name} gave no usable answer when asked twice: {problem}")
            garbage.usage = usage
            raise garbage from None

    def _send(self, messages: list[dict[str, str]], form: Any, deadline: float) -> tuple[Reply, Usage]:
        settings = self._settings
        timeout_s = min(settings.llm_timeout_s, deadline - time.monotonic())
        if timeout_s <= 0:
            raise ModelFault(
                "llm_timeout", "the time for one record is over; what was answered is kept for the next try"
            )
        text = sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
        # No token is shorter than a byte: whatever the model makes of it, it is not more than this.
        most = self._usage(1, text + _TEMPLATE_TOKENS * len(messages), self._answer_tokens)
        if not self._budget.take(most):
            spent = (
                "the crawl's budget for language models is spent: raise llm_max_tokens_per_crawl or "
                "llm_max_cost_per_crawl, then `curtsy failures replay --cause llm_budget`"
            )
            raise ModelFault("llm_budget", spent, again=False)
        used = Usage()
        try:
            where = self._where()
            manner = _manners.get((where.url, where.model), Manner())
            reply = endpoint.call(
                where, messages, form,
                max_tokens=self._answer_tokens, timeout_s=timeout_s, manner=manner,
            )  # fmt: skip
            _manners[where.url, where.model] = reply.manner
            used = self._usage(1, reply.prompt_tokens, reply.completion_tokens)
        except MissingPart as error:
            count("llm_missing")
            raise ModelFault("llm_missing", str(error), again=False) from error
        except ModelFault as fault:
            if fault.cause in ("llm_timeout", "llm_garbage"):  # it may have worked on it, and may be paid for that
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
        told = [*parts, self.name, prompts.version(), self.style, str(self._answer_tokens)]
        return hashlib.sha256("\0".join(told).encode("utf-8", "replace")).hexdigest()

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
    """The server that the settings name."""
    return Endpoint((settings.llm_url or "").rstrip("/"), settings.llm_name, settings.llm_api_key)


def groups(leaves: Sequence[Leaf], most: int) -> Iterator[list[Leaf]]:
    """Leaves that are asked together; those of one list's items belong together."""
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
    """Values without quotes get the sentence that has them and can be about their leaf. One that stands only where the
    page speaks of something else is dropped: it would be supported by chance. One that stands nowhere is an invention,
    kept for grounding to tell."""
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
    """Signs that were changed for the model are changed back, unless the page has them so."""
    return quote if any(_flat(quote) in text for text in flat) else prompts.unplain(quote)


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()
