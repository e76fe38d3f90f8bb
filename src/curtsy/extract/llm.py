"""A language model as the last source of values: it is called only for missing values, and its output is never trusted.

    Model       `ask` for the leaves of a schema, `question` for a rubric; blocks, so call it in a thread
    ModelFault  no usable answer; the stage decides about retries

budget.py has what a crawl may spend, model_calls.py the calls and the cache. Every value comes with a quote. Both are
only claims: grounding checks that the quote is in the page and that the value follows from it.
"""

from __future__ import annotations

import contextvars
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from curtsy.core.claims import Claim, Extraction, Rung, Source, Usage
from curtsy.core.observe import count
from curtsy.core.settings import Settings
from curtsy.extract import answer_schema, answers, prompts, verification
from curtsy.extract.answer_schema import Style
from curtsy.extract.budget import Budget, Caps, Topic, exceeds, less
from curtsy.extract.chunks import relates, sentences
from curtsy.extract.endpoint import Endpoint, ModelFault
from curtsy.extract.model_calls import BatchQueue, Cache, Calls, Memory, Question
from curtsy.extract.prompts import Page
from curtsy.extract.verification import Check, Opinion, Statement
from curtsy.grounding.schema import Leaf, Schema

__all__ = [
    "Budget", "Cache", "Caps", "Endpoint", "Judgment", "Memory", "Model", "ModelFault", "Page", "Topic", "exceeds",
    "groups", "less", "prompt_texts",
]  # fmt: skip

#: share of a stage's lease, so that no other worker begins the same row
_SHARE_OF_LEASE = 0.75
#: a small model answers one field at a time, from a short text, with a short answer
_LOCAL_CONTEXT_TOKENS, _LOCAL_ANSWER_TOKENS, _LOCAL_LEAVES = 250, 160, 1

prompt_texts = prompts.prompt_texts


@dataclass(frozen=True, slots=True)
class Judgment:
    """A model's answer to a rubric's question. The quote counts only after it was found in the evidence."""

    #: 0 to 1
    score: float
    reason: str
    quote: str | None
    usage: Usage


#: what a group of leaves led to: claims and usage, a fault, or None if it was not asked
_Result = tuple[list[Claim], Usage] | ModelFault | None


class Model:
    """`where` returns the address of the model at each call: a local model may have been restarted."""

    def __init__(
        self,
        settings: Settings,
        cache: Cache | None = None,
        budget: Budget | None = None,
        where: Callable[[], Endpoint] | None = None,
        queue: BatchQueue | None = None,
    ) -> None:
        self._settings = settings
        self.local = settings.llm_kind == "local"
        self.style = Style.VALUE if self.local else Style.QUOTE
        self.name = settings.llm_name
        self._calls = Calls(
            settings,
            cache if cache is not None else Memory(),
            budget if budget is not None else Caps(),
            where or (lambda: endpoint_of(settings)),
            self._answer_tokens,
            queue,
        )

    def ask(self, schema: Schema, leaves: Sequence[Leaf], pages: Sequence[Page]) -> Extraction:
        """Return claims for the leaves from the texts of the pages; groups of leaves go to the model at the same time.

        A fault has the claims of the groups that were answered, and the leaves of the others. After a fault, no other
        group is begun.
        """
        deadline = time.monotonic() + _SHARE_OF_LEASE * min(
            self._settings.stage_lease_s, self._settings.task_soft_limit_s
        )
        asked = list(groups(leaves, self._leaves_per_call))
        results: list[_Result] = [None] * len(asked)

        def one(at: int) -> None:
            # Questions that wait for a batch are all queued at once.
            if not any(isinstance(result, ModelFault) and result.cause != "llm_batch" for result in results):
                results[at] = self._tried(schema, asked[at], pages, deadline)

        _at_once(one, len(asked), 1 if self.local else self._settings.llm_concurrency)
        return _joined(asked, results)

    def question(self, question: str, texts: Sequence[str], topic: Topic | None = None) -> Judgment:
        """Return how far the texts answer the question with yes."""
        prompt = prompts.judgment(question, texts, self._context_tokens)
        if not prompt.content.strip():
            return Judgment(0.0, "nothing is stated", None, Usage())
        asked = Question(
            prompt=prompt, form=answers.question_form(bounded=self.local),
            key=self._key("question", question, prompt.content), read=answers.judgment,
            topic=topic or Topic("", (question,)),
        )  # fmt: skip
        said, usage = self._calls.answer(asked, time.monotonic() + self._settings.llm_timeout_s)
        score, reason, quote = said
        return Judgment(score, reason, quote, usage)

    def verify(
        self, check: Check, schema: Schema, subject: str, statements: Sequence[Statement]
    ) -> tuple[dict[str, Opinion], Usage]:
        """Return whether the model confirms each statement: path -> opinion."""
        opinions: dict[str, Opinion] = {}
        usage = Usage()
        for start in range(0, len(statements), self._settings.llm_leaves_per_call):
            some = statements[start : start + self._settings.llm_leaves_per_call]
            prompt = verification.prompt(check, schema, subject, some)
            question = Question(
                prompt=prompt, form=verification.form(some),
                key=self._key(check.value, verification.digest(check), schema.hash, subject, prompt.content),
                read=partial(verification.read, statements=some),
                topic=Topic(schema.name, tuple(dict.fromkeys(one.leaf.path for one in some))),
            )  # fmt: skip
            said, used = self._calls.answer(question, time.monotonic() + self._settings.llm_timeout_s)
            opinions |= said
            usage += used
        return opinions, usage

    def _tried(self, schema: Schema, leaves: Sequence[Leaf], pages: Sequence[Page], deadline: float) -> _Result:
        try:
            return self._ask(schema, leaves, pages, deadline)
        except ModelFault as fault:
            return fault

    def _ask(
        self, schema: Schema, leaves: Sequence[Leaf], pages: Sequence[Page], deadline: float
    ) -> tuple[list[Claim], Usage]:
        sources = [page.text for page in pages]
        prompt = prompts.extraction(schema, leaves, pages, self._context_tokens, self.style)
        if prompt is None:
            return [], Usage()
        question = Question(
            prompt=prompt, form=answer_schema.schema_of(leaves, self.style, bounded=self.local),
            key=self._key(schema.hash, *(leaf.path for leaf in leaves), prompt.content),
            read=lambda said: answer_schema.read(said, leaves),
            topic=Topic(schema.name, tuple(leaf.path for leaf in leaves)),
        )  # fmt: skip
        found, usage = self._calls.answer(question, deadline)
        if self.style is Style.VALUE:
            return list(_located(schema, found, sources)), usage
        return list(_claims(found, sources)), usage

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


def _at_once(one: Callable[[int], None], number: int, most: int) -> None:
    """Run `one(0)`, `one(1)`, ..., up to `most` of them at the same time, in the context of the caller."""
    if number <= 1 or most <= 1:
        for at in range(number):
            one(at)
        return
    with ThreadPoolExecutor(min(number, most), thread_name_prefix="model") as pool:
        list(pool.map(lambda at: contextvars.copy_context().run(one, at), range(number)))


def _joined(asked: Sequence[Sequence[Leaf]], results: Sequence[_Result]) -> Extraction:
    """Return all answers; raise the first fault, with them."""
    answered = [result for result in results if isinstance(result, tuple)]
    claims = tuple(claim for found, _ in answered for claim in found)
    usage = sum((used for _, used in answered), Usage())
    faults = [result for result in results if isinstance(result, ModelFault)]
    if not faults:
        return Extraction(claims=claims, usage=usage)
    # A permanent fault takes precedence.
    faults.sort(key=lambda one: (one.again, one.cause == "llm_batch"))
    fault = faults[0]
    fault.usage = sum((one.usage for one in faults), usage)
    fault.claims = claims
    open_groups = (group for group, result in zip(asked, results, strict=True) if not isinstance(result, tuple))
    fault.unanswered = tuple(leaf.path for group in open_groups for leaf in group)
    raise fault


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
    reports it as unsupported.
    """
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
