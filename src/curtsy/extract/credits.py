"""Credits in a line: `Text: Nora Field Photos: Tom Alder`, `5 May 2024 – Door Nora Veld`, `윤서진 기자`. Pure.

LABEL        what comes before the names of authors
OTHER        where the credit of someone else begins: `Photos: `, `Medically reviewed by`
own          where the credits of authors begin in a line
reported     the names before a word for a reporter
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from curtsy.extract.article_words import WORDS, any_of
from curtsy.grounding.dates import dates

_AND = rf"(?: {any_of('ands')} | ?[・/／＋+&,、·ㆍと] ?)"
_MARK = r" {0,2}[:：／/・=＝]"
#: `Text`, `Text und Fotos`, `写真・文`
_LABELS = rf"(?:{any_of('other_credits')}{_AND})?{any_of('labels')}(?:{_AND}{any_of('other_credits')})?"
_VERBS = rf"(?:{any_of('other_credits')}{_AND})?{any_of('verbs')}(?:{_AND}{any_of('other_credits')})?"
_BY = rf"(?:(?:{_VERBS} )?{any_of('by')}|{any_of('texts_before_de')} de) (?=\S)"
LABEL = re.compile(
    rf"^\W{{0,4}}(?:{_BY}|(?:{_LABELS}|written by|posted by){_MARK} {{0,3}}"
    r"|(?:文|作者|撰文|撰稿|记者|記者|글) ?[|｜丨] ?|글(?:[·ㆍ]사진)? (?=[가-힣]{2,4}(?:\s|$))"
    r"|(?:(?:written|posted|published) by|بقلم|מאת|โดย) "
    r"|[^\W\d_]{0,8}(?:记者|記者)[ \u3000]{1,2}(?=\S))",
    re.IGNORECASE,
)
OTHER = re.compile(
    r"(?:^|(?<=[\s,;(（]))(?:[a-z]{3,10}ly )?"
    rf"(?:{any_of('other_verbs')} {any_of('by')}\b|{any_of('other_credits')}{_MARK})",
    re.IGNORECASE,
)
#: within a line
_COLON = re.compile(rf"(?<=[\s|•·｜»;,(（\[【/–—]){_LABELS}{_MARK} {{0,3}}(?=\S)", re.IGNORECASE)
_INNER_BY = re.compile(rf"(?<=[ |•·｜]){_BY}", re.IGNORECASE)
_GOES_ON = re.compile(rf"\s*(?:[,，、&·ㆍ]|{any_of('ands')} )", re.IGNORECASE)
_TEXT_LABEL = re.compile(
    rf"(?:^|[\s|•·｜;,(（/–—]){_LABELS}{_MARK}"
    rf"|\b{any_of('verbs')}(?:{_AND}{any_of('other_credits')})? {any_of('by')} ",
    re.IGNORECASE,
)
_BARS = "|•·｜»›"
_SENTENCE_END = re.compile(r"[.!?。！？]\s*$")
_MAX_BEFORE_LABEL, _MAX_BEFORE_BY, _MAX_BESIDE_DATE = 14, 5, 3
_NAME = r"(?:[가-힣]{2,4}|[\u3005\u3400-\u9fff]{2,4}(?:[ \u3000][\u3005\u3400-\u9fff]{1,3})?)"
_REPORTER = re.compile(
    rf"^\W{{0,3}}(?:[^\s=\]】)]{{2,12}}[\s=\]】)]{{1,3}})?(?P<names>{_NAME}(?: ?[·ㆍ,、，] ?{_NAME}){{0,4}})[ \u3000]?"
    rf"{any_of('reporters')}(?:[\])】]|\s{{0,2}}(?:$|[|·=(（<@\d]|입력|승인|기사입력|\w[\w.+-]{{1,40}}@))"
)
#: `記者陳怡君／台中報導`
_AFTER_REPORTER = re.compile(
    rf"^\W{{0,3}}[^\s]{{0,6}}?(?:记者|記者)[ \u3000]?(?P<names>{_NAME}(?:[、，]{_NAME}){{0,4}})"
    r"(?:[／/ ][^\s／/]{1,6})?[ \u3000]?(?:報導|报道|報道|撰文)$"
)
#: `（记者 顾晓岚）` at the beginning or the end of a text
_IN_BRACKETS = re.compile(
    rf"[（(][^（()）\n]{{0,10}}?(?:记者|記者)[ :：\u3000]{{0,2}}(?P<names>{_NAME}(?:[ 、，\u3000]{_NAME}){{0,4}})"
    r"[^（()）\n]{0,12}[）)]"
)
_BETWEEN_NAMES = re.compile(r" ?[·ㆍ,、，] ?")


def own(text: str) -> Iterator[int]:
    """Yield where a credit of authors begins: at the beginning, or behind a date, a bar or another credit."""
    if LABEL.match(text):
        yield 0
    for found in _COLON.finditer(text):
        before = text[: found.start()].rstrip()
        if not _SENTENCE_END.search(before) and len(before.split()) <= _MAX_BEFORE_LABEL:
            yield found.start()
    for found in _INNER_BY.finditer(text):
        if _is_quiet(text[: found.start()].rstrip()):
            yield found.start()


def goes_on(text: str) -> bool:
    """Whether the text behind a name names another author."""
    return _GOES_ON.match(text) is not None


def names_text(text: str) -> bool:
    """Whether a credit says who wrote the text, and not only `By Nora Field`, which may be the photographer."""
    return _TEXT_LABEL.search(text) is not None


def _is_quiet(before: str) -> bool:
    """Whether a line up to `by` is a date, or a few words and a bar: `5 May 2024, 10:30`, `Politics |`."""
    if len(before.rstrip(_BARS).split()) <= _MAX_BEFORE_BY and before[-1:] in _BARS:
        return True
    stated = list(dates(before))
    for one in stated:
        before = before.replace(before[one.start : one.end], " " * (one.end - one.start))
    words = [word for word in before.split() if any(map(str.isalpha, word)) and ":" not in word]
    return bool(stated) and len(words) <= _MAX_BESIDE_DATE


def reported(text: str) -> list[str]:
    """Return the names of a line such as `윤서진 기자`, `한들일보 윤서진 기자 yoon@a.test`, `山田太郎 記者`."""
    found = _REPORTER.match(text) or _AFTER_REPORTER.match(text)
    return [] if found is None else _people(found["names"])


def in_brackets(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the span and the names of `（记者 顾晓岚）`."""
    for found in _IN_BRACKETS.finditer(text):
        if names := _people(re.sub(r"[ \u3000]", "、", found["names"])):
            yield *found.span(), names


def _people(names: str) -> list[str]:
    every = _BETWEEN_NAMES.split(names)
    return [] if any(one.startswith(tuple(WORDS["no_reporters"])) for one in every) else every
