"""Inputs on which a pattern that backtracks takes long, made from the pattern itself; and how time grows with size."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Iterator
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

#: a measurement below this says nothing
MEASURABLE_S = 0.003
#: two measurements above it are enough
LONG_S = 0.15
STEEP = 1.5
_FIRST, _LAST = 256, 1 << 16
_SAMPLES = {
    sre.CATEGORY_DIGIT: "7", sre.CATEGORY_NOT_DIGIT: "k", sre.CATEGORY_SPACE: " ", sre.CATEGORY_NOT_SPACE: "k",
    sre.CATEGORY_WORD: "k", sre.CATEGORY_NOT_WORD: "-",
}  # fmt: skip
#: what stands in every page, and characters that few patterns take
_COMMON = ("a", "A", "7", " ", "\n", "<", ">", '"', ".", "-", "\x01", "é")
_MOST_CHARS, _MOST_WORDS, _RANDOM = 10, 6, 60


def inputs(pattern: re.Pattern[Any]) -> Iterator[Callable[[int], str]]:
    """Makers of inputs of about a given size. The pattern's alphabet, its words, and texts that it matches."""
    parsed = _parser.parse(pattern.pattern, pattern.flags)
    chars: dict[str, None] = {}
    words: dict[str, None] = {}
    _gather(parsed, chars, words)
    match = _sample(parsed, 1)[:200]
    longer = _sample(parsed, 3)[:300]
    alphabet = [*list(chars)[:_MOST_CHARS], *(char for char in _COMMON if char not in chars)]
    texts = [*list(words)[:_MOST_WORDS], *(text for text in (match, longer) if text)]
    for char in alphabet:
        yield lambda n, c=char: c * n  # type: ignore[misc]
        yield lambda n, c=char: c * n + "\x01"  # type: ignore[misc]
    inner = list(chars)[:_MOST_CHARS]
    for first in inner:
        for second in (*inner, " ", "a"):
            if first != second:
                yield lambda n, p=first + second: p * (n // 2)  # type: ignore[misc]
    for text in texts:
        yield lambda n, t=text: t * (n // len(t))  # type: ignore[misc]
        yield lambda n, t=text: (t[:-1] or t) * (n // max(1, len(t) - 1))  # type: ignore[misc]
        for char in alphabet:
            yield lambda n, t=text, c=char: t + c * n + "\x01"  # type: ignore[misc]
            yield lambda n, t=text, c=char: t[:-1] + c * n + "\x01"  # type: ignore[misc]
            yield lambda n, t=text, c=char: (t + c) * (n // (len(t) + 1))  # type: ignore[misc]
    # Anything repeated, from the pattern's own characters and words, behind the beginning of a match.
    dice = random.Random(pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.hex())
    tokens = [*inner, *texts, " ", "\n", "a", "7"]
    for _ in range(_RANDOM):
        pump = "".join(dice.choices(tokens, k=dice.randint(1, 4)))
        start = match[: dice.randint(0, len(match))]
        yield lambda n, s=start, p=pump: s + p * (n // len(p)) + "\x01"  # type: ignore[misc]
    # A near match whose repeated parts are long: each prefix of a match, each character of it many times.
    for at in range(len(match)):
        yield lambda n, k=at: match[:k] + match[k] * n + "\x01"  # type: ignore[misc]
        yield lambda n, k=at: match[: k + 1] * (n // (k + 1))  # type: ignore[misc]


def _gather(parsed: Any, chars: dict[str, None], words: dict[str, None]) -> None:
    run = ""
    for op, given in parsed:
        if op is sre.LITERAL:
            chars.setdefault(chr(given))
            run += chr(given)
            continue
        if len(run) > 1:
            words.setdefault(run)
        run = ""
        if op is sre.IN:
            for part in _members(given):
                chars.setdefault(part)
        elif op is sre.NOT_LITERAL:
            chars.setdefault("k" if chr(given) != "k" else "j")
        elif op is sre.ANY:
            chars.setdefault("k")
        else:
            for inner in _inner(op, given):
                _gather(inner, chars, words)
    if len(run) > 1:
        words.setdefault(run)


def _members(given: Any) -> list[str]:
    if given[0][0] is sre.NEGATE:
        taken = re.compile("[" + "".join(map(_class_part, given[1:])) + "]")
        return [char for char in ("k", " ", "7", "-", "\n", "Q") if not taken.match(char)][:2]
    found = []
    for op, value in given:
        if op is sre.LITERAL:
            found.append(chr(value))
        elif op is sre.RANGE:
            found.append(chr((value[0] + value[1]) // 2))
        elif op is sre.CATEGORY:
            found.append(_SAMPLES.get(value, "k"))
    return found[:4]


def _class_part(part: Any) -> str:
    op, value = part
    if op is sre.LITERAL:
        return re.escape(chr(value))
    if op is sre.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    return {sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
            sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W"}[value]  # fmt: skip


def _inner(op: Any, given: Any) -> list[Any]:
    if op is sre.BRANCH:
        return list(given[1])
    if op is sre.SUBPATTERN:
        return [given[3]]
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [given[2]]
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return [given[1]]
    if op is sre.ATOMIC_GROUP:
        return [given]
    return []


def _sample(parsed: Any, times: int) -> str:
    """A text that the pattern matches, or nearly."""
    made = []
    for op, given in parsed:
        if op is sre.LITERAL:
            made.append(chr(given))
        elif op is sre.IN:
            made.append((_members(given) or [""])[0])
        elif op in (sre.NOT_LITERAL, sre.ANY):
            made.append("k")
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            low, high, inner = given
            made.append(_sample(inner, times) * min(max(low, times), high, max(low, 40)))
        elif op is sre.BRANCH:
            made.append(_sample(given[1][0], times))
        elif op in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
            made.append(_sample(given[3] if op is sre.SUBPATTERN else given, times))
    return "".join(made)


def growth(work: Callable[[int], Callable[[], object]], last: int = _LAST) -> tuple[float, int, float]:
    """(exponent of the time over the size, size, seconds); `work(size)` prepares, what it returns is measured.

    Sizes double until the time can be measured. The exponent is that of the last doublings; 0: too fast to tell.
    """
    points: list[tuple[int, float]] = []
    size = _FIRST
    while size <= last:
        taken = _cpu(work(size))
        points.append((size, taken))
        if taken > LONG_S:
            break
        size *= 2
    size, taken = points[-1]
    if taken < MEASURABLE_S:
        return 0.0, size, taken
    before = [point for point in points[:-1] if point[1] > MEASURABLE_S / 40][-2:]
    slopes = [math.log(taken / one) / math.log(size / n) for n, one in before if one > 0]
    return (min(slopes) if slopes else 0.0), size, taken


def _is_quick(work: Callable[[int], Callable[[], object]], last: int) -> bool:
    """So fast at every size, or growing so little, that no closer measurement is worth while: a square would show."""
    before = 0.0
    for size in (_FIRST // 2, last // 8, last):
        run = work(size)
        began = time.thread_time()
        run()
        taken = time.thread_time() - began
        if taken > MEASURABLE_S and (size < last or taken > 16 * before):
            return False
        before = taken
    return True


def is_steep(work: Callable[[int], Callable[[], object]], last: int = _LAST, tries: int = 4) -> str | None:
    """What was measured, if the time grows faster than the size each time it is looked at."""
    if _is_quick(work, last):
        return None
    for attempt in range(tries):
        # Larger inputs each time: a single step, such as a check that begins at some size, is not growth.
        slope, size, taken = growth(work, last << attempt)
        if slope <= STEEP:
            return None
    return f"time grows with the power {slope:.2f}: {taken * 1000:.0f} ms for {size:,} characters"


def _cpu(run: Callable[[], object]) -> float:
    best = math.inf
    for _ in range(3):
        began = time.thread_time()
        run()
        best = min(best, time.thread_time() - began)
        if best > LONG_S / 3:
            break
    return best
