"""Whether the organization itself is the subject of a sentence.

    is_organization   `we`, `our company`, `the trust` of Marlow Land Trust; not `the mill that we rent`
    is_own_subject    `we cut`, `our vans run`, `92 percent of our waste`, `Norvale holds`, `solar panels on our roof`;
                      not `the farms in our supply chain`, `with our software, hotels save`, `most mills`

A sentence without a sign of its subject is not a statement of the organization, except notes that leave the subject out
(`Recycled 92 percent of waste`). The words are in `subject.toml`. Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from curtsy.grounding.generalities import fragments, is_general, is_own_han
from curtsy.grounding.kinds import is_kind_of
from curtsy.grounding.patterns import compiled

_WORDS: dict[str, str] = tomllib.loads((Path(__file__).parent / "subject.toml").read_text("utf-8"))
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_LETTERS = re.compile(r"[^\W\d_]")
_KANA = re.compile(r"[\u3041-\u30ff]")
#: scripts whose sentences often leave out their subject, and that have no rules here
_NO_RULES = re.compile(r"[\uac00-\ud7a3]")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_CLAUSE_END = re.compile(r"[;:–—]|[,.] ?(?:and|but|while|whereas|und|aber|während|et|mais|tandis|y|pero|mientras)\b")
_TOPIC = re.compile(r"^(.{0,60}?)(では|は|が|も)")
#: what follows `が` in a clause that describes a noun: `当社が取引する農家は`
_DESCRIBING = re.compile(r"^[^、。は]{1,20}[るたうくすつぬぶむ]([一-龯ァ-ヶー]{1,10})[はが]")
_TWO_NAMES = re.compile(r"\b[A-ZÀ-ÖØ-Þ][^\W\d_]{2,30}(?: & | )[A-ZÀ-ÖØ-Þ][^\W\d_]{2,30}\b")
_HEAD = re.compile(r"[一-龯ァ-ヶー]{1,12}$")
_LEGAL = re.compile(
    r",? (?:ltd|limited|inc|llc|plc|corp|gmbh|ag|kg|eg|sarl|sas|s\.a|s\.l|s\.r\.l|s\.p\.a|b\.v)\.?$", re.IGNORECASE
)
#: `the group of eleven hotels`; not `the board of seven members`
_GROUP_OF = re.compile(r"(?:group|groupe|grupo|gruppo|association|society) (?:of|de|des|di) ", re.IGNORECASE)
#: after `our`: `laundry, Whitelinen, has`
_NAMED_OTHER = re.compile(r"(?:[\w-]+ ){0,2}[\w-]+, [A-ZÀ-ÖØ-Þ][\w'’&-]+(?: [\w'’&-]+){0,4}, ")
#: words of a noun phrase in which its noun is
_NEAR = 3
_MAX_LEADS = 3
_MAX_PHRASE = 120
_FIGURE = re.compile(r"\d")
_MIN_NAME = 4


def is_own_subject(text: str, names: Sequence[str] = ()) -> bool:
    """Return whether the organization, or something of its own, is the subject. `names` are its names."""
    if is_general(text) and not _acts(text):
        return False
    if parts := fragments(text):
        return all(_acts(one) or _says("marks_unspaced", one) or _is_noted(one, "", one) for one in parts)
    if _KANA.search(text):
        return _is_own_topic(text, names)
    if _NO_RULES.search(text):
        return True
    if _HAN.search(text):
        return is_own_han(text, names)
    lead, main = _parted(text)
    clause = main[: found.start()] if (found := _CLAUSE_END.search(main)) else main
    if _acts(clause):
        return True
    mark = _mark(clause, names)
    if mark is None:
        if _is_noted(text, lead, clause) or _is_whole(clause):
            return True
        return _is_place(lead) and _is_of_thing(clause, clause)
    start, end = mark
    if _follows_other(clause[end:]):
        return bool(_any("engaged").search(clause[end:]))
    if _any("by_us").search(clause[:end]):
        return _has_thing(_words(clause[:start]))
    is_name = not _any("marks").search(clause[start:end])
    named = _NAMED_OTHER.match(clause[end:])
    if _is_possessive(clause[start:end]) and named is not None and not any(name in named[0] for name in names):
        return False
    is_topic = main[len(clause) :].startswith(":")  # `Our year in brief: we saved`
    if (
        _is_possessive(clause[start:end])
        and _is_begin(clause[:start])
        and not is_topic
        and not _is_own_noun(clause[end:], names)
    ):
        return False
    return _is_of_thing(clause[:start], clause) or (is_name and _is_genitive(clause[:start]))


def is_organization(phrase: str, names: Sequence[str] = ()) -> bool:
    """Return whether a phrase is the organization itself: a pronoun, its name, a noun for it, a noun in its name.

    >>> is_organization("the trust", ["Marlow Land Trust"]), is_organization("the mill", ["Marlow Land Trust"])
    (True, False)
    """
    said = _LEGAL.sub("", " ".join(phrase.replace("’", "'").split()).strip(" ,-"))
    folded = said.casefold()
    plain = _spelled([*names, *(_LEGAL.sub("", name) for name in names)])
    if any(folded.endswith(one) and _is_opening(said[: -len(one)]) for one in plain):
        return True
    if "l'" in folded:
        said = said.replace("l'", "l' ").replace("L'", "l' ")
    words = said.split()
    while words and _any("openings", exact=True).search(words[-1]) and len(words) > 1:
        words.pop()
    if not words:
        return False
    if _any("pronouns", exact=True).search(words[-1]) or _any("bodies_unspaced", exact=True).search(words[-1]):
        return _is_opening(" ".join(words[:-1]))
    is_named = is_kind_of(words[-1], names)
    is_kind = is_named or bool(_any("organizations", exact=True).search(words[-1]))
    if not is_named and _any("side_bodies", exact=True).search(words[-1]):
        is_kind = not any(_any("possessives", exact=True).search(word) for word in words)
    for at in range(len(words) - 1):
        if _any("possessives", exact=True).search(words[at]) or _any("articles", exact=True).search(words[at]):
            is_kind = is_kind and not (is_anaphor(said) and _is_business_of_other(words[-1], names))
            return is_kind and _is_opening(" ".join(words[:at])) and _is_opening(" ".join(words[at + 1 : -1]))
    return False


def _is_business_of_other(word: str, names: Sequence[str]) -> bool:
    """`the company`, on a page of a city or a school."""
    public = _any("no_businesses", exact=True)
    return bool(_any("businesses", exact=True).search(word)) and any(
        public.search(one) for name in names for one in _words(name)
    )


def is_anaphor(phrase: str) -> bool:
    """Return whether a phrase is about what was named before: `the company`; not `our company`."""
    words = phrase.replace("’", "'").split()
    return bool(words) and not any(
        _any("possessives", exact=True).search(word) or _any("pronouns", exact=True).search(word) for word in words
    )


def is_known(word: str) -> bool:
    """Return whether a word is in one of the lists of common words: `emissions`, `Fahrer`, `clients`."""
    names = ("things", "own_nouns", "organizations", "others", "small")
    return any(_any(name, exact=True).search(word) for name in names)


def is_other_name(phrase: str, names: Sequence[str]) -> bool:
    """Return whether a phrase has a name of two words that is not one of `names`: `Cafe Rosa`; not `Energy Use`."""
    own = {word.casefold() for name in names for word in _words(name)}
    for found in _TWO_NAMES.finditer(phrase):
        words = found.group().split()
        if not any(word.casefold() in own for word in words) and not _has_thing(words):
            return True
    return False


def _spelled(names: Sequence[str]) -> list[str]:
    return [" ".join(name.replace("’", "'").casefold().split()) for name in names if len(name) > 1]


def _is_opening(text: str) -> bool:
    """Nothing, or words that begin no phrase of their own: `and the`, `heute`."""
    return all(
        _any("openings", exact=True).search(word) or _any("articles", exact=True).search(word)
        for word in text.replace(",", " ").split()
    )


@cache
def _any(name: str, *, start: bool = False, exact: bool = False) -> Any:
    """Return a pattern for the words of a list: anywhere, at the start, or the whole text."""
    words = "".join(line.strip() for line in _WORDS[name].splitlines()).strip("|")
    edge = r"[^\p{L}\p{N}]"
    before = "^(?:" if start or exact else rf"(?:^|{edge})(?:"
    after = ")$" if exact else rf")(?:{edge}|$)"
    return compiled(before + words + after, max_length=8_000, case_sensitive=False)


def _words(text: str) -> list[str]:
    return [found.group() for found in _WORD.finditer(text)]


def _parted(text: str) -> tuple[str, str]:
    """Return what comes before the main clause (`In 2022,`, `With our app,`, `As we said,`), and the rest."""
    rest = text.lstrip(" \t–—-•*·")
    for _ in range(_MAX_LEADS):
        part, comma, after = rest.partition(", ")
        if not comma or not _any("leads", start=True).search(part) or _has_subject(part) or _is_clause(part):
            break
        rest = after
    return text[: len(text) - len(rest)], rest


def _is_clause(part: str) -> bool:
    """`2023 recycelte die Gemeinde 12 Tonnen Papier`: a year, and more than an adverbial."""
    return part[:4].isdigit() and len(_words(part)) > _MAX_LEADS


def _has_subject(part: str) -> bool:
    """`In 2022 we cut waste`, `Today our plants`: not only an adverbial, but the beginning of the main clause."""
    if _any("means", start=True).search(part):
        return False
    said = next((word for word in _words(part) if not is_small(word)), "")
    return bool(_any("marks", exact=True).search(said) or _any("first_persons", exact=True).search(said))


def _acts(clause: str) -> bool:
    """Return whether a first person is the subject: not of a relative clause, not after the subject of another."""
    words = _words(clause)
    for at, word in enumerate(words):
        if not _any("first_persons", exact=True).search(word) or _any("no_persons", exact=True).search(word):
            continue
        if word.casefold() == "nous" and not any(
            _any("first_plurals", exact=True).search(one) for one in words[at + 1 :][:4]
        ):
            continue  # `la justice nous a reproché`
        before = words[:at]
        if before and _any("tonics", exact=True).search(word) and _any("obliques", exact=True).search(before[-1]):
            continue  # `ha renovado con nosotros`
        reach = 1 if _any("pronouns", exact=True).search(word) else 2  # `que ya hemos`
        if any(_any("relatives", exact=True).search(one) for one in before[-reach:]):
            continue
        if word.casefold() != "we" or not before or _any("adverbs", exact=True).search(before[0]):
            return True
        return _has_thing(before)
    return False


def _mark(clause: str, names: Sequence[str]) -> tuple[int, int] | None:
    """Return the first place of a possessive of the first person, of a name, or of `the company`."""
    found = [one.span() for one in [_any("marks").search(clause)] if one is not None]
    body = _any("bodies").search(clause)
    if body is not None and not clause[body.end() : body.end() + 1].isupper() and not _is_of_others_group(clause, body):
        found.append(body.span())
    folded = clause.casefold()
    for name in names:
        at = folded.find(name.casefold()) if len(name) >= _MIN_NAME else -1
        if at >= 0:
            found.append((at, at + len(name)))
    return min(found, default=None)


def _is_of_others_group(clause: str, body: Any) -> bool:
    return _GROUP_OF.match(clause[body.start() :].lstrip(" ").partition(" ")[2]) is not None


def _follows_other(after: str) -> bool:
    """`our largest client`, `Norvale's suppliers`: others, in the noun phrase that follows."""
    words = [] if after.startswith("of ") else _words(after[:80])[: _NEAR + 1]
    return any(_any("others", exact=True).search(word) for word in words)


def _is_begin(prefix: str) -> bool:
    """Nothing, or words such as `Today`, `All` before `our vans`; not `half of`."""
    names = ("adverbs", "openings", "wholes")
    return all(any(_any(name, exact=True).search(word) for name in names) for word in _words(prefix) if word != "of")


def _is_possessive(mark: str) -> bool:
    return any(_any("possessives", exact=True).search(word) for word in _words(mark))


def _is_own_noun(after: str, names: Sequence[str]) -> bool:
    """`our kilns`, `our delivery vans`; not `our cat`: the noun phrase has what an organization is or has."""
    verb = _any("auxiliaries").search(after)
    phrase = after[: verb.start()] if verb is not None else after[:_MAX_PHRASE]
    figure = _FIGURE.search(phrase)
    if figure is not None and any(not is_small(word) for word in _words(phrase[: figure.start()])):
        phrase = phrase[: figure.start()]
    said = [word for word in _words(phrase) if not is_small(word)][:_NEAR]
    known = ("things", "own_nouns", "organizations")
    return any(_any(name, exact=True).search(word) for word in said for name in known) or _is_of_site(said, names)


def _is_of_site(words: Sequence[str], names: Sequence[str]) -> bool:
    own = {word.casefold() for name in names for word in _words(name) if len(word) >= _MIN_NAME}
    return any(word.casefold() in own for word in words[:_NEAR])


def _is_of_thing(prefix: str, clause: str) -> bool:
    """Return whether what is before the mark has no subject, or a thing that an organization has: waste, panels."""
    words = _words(prefix)
    if any(_any("others", exact=True).search(word) for word in words):
        return False
    content = [word for word in words if not is_small(word)]
    if not content:
        return prefix != clause
    if len(content) == 1 and len(words) > 1 and _any("leads", start=True).search(prefix) and prefix != clause:
        return True  # a verb before its subject: `2023 senkte Norvale`
    return _has_thing(words) and not _names_other(words, content)


def _is_genitive(prefix: str) -> bool:
    """`All warehouses of` a name: what belongs to the organization, unless it is others."""
    return bool(_any("of").search(prefix[-6:])) and not _any("others").search(prefix)


def _has_thing(words: Sequence[str]) -> bool:
    content = [word for word in words if not is_small(word)][:_NEAR]
    return any(_any("things", exact=True).search(word) for word in content)


def is_small(word: str) -> bool:
    """Return whether a word is an article, a preposition, a number or the like, or has no letters."""
    return not _LETTERS.search(word) or _any("small", exact=True).search(word) is not None


def _names_other(words: Sequence[str], content: Sequence[str]) -> bool:
    """A name within the phrase: `waste at Hallberg`. German writes every noun with a capital letter."""
    if any(_any("german", exact=True).search(word) for word in words):
        return False
    return any(word[0].isupper() and not word.isupper() for word in content if word is not words[0])


def _is_place(lead: str) -> bool:
    """`In our plants,`: where the organization itself acts; not `with our software,`."""
    mark = _any("marks").search(lead)
    return mark is not None and not _any("means", start=True).search(lead) and not _follows_other(lead[mark.end() :])


def _is_noted(text: str, lead: str, clause: str) -> bool:
    """A note without a subject: `Recycled 92 percent of waste`, `Renewable electricity: 85 %`."""
    if _any("deeds", start=True).search(clause):
        return not _any("others").search(lead) and not _any("their").search(clause)
    words = _words(clause)
    has_figure = any(char.isdigit() for char in text)
    return has_figure and text[-1:] not in (".", "!") and len(words) <= 2 * _NEAR and _has_thing(words)


def _is_whole(clause: str) -> bool:
    """All of a thing, on its own site: `All yarn waste has been recycled`; not `all mills in the region`."""
    found = _any("states").search(clause)
    if found is None or not _any("wholes", start=True).search(clause) or _any("others").search(clause):
        return False
    if _any("countries").search(clause):
        return False
    words = _words(clause[: found.start()])
    return len(words) <= _NEAR + 1 and not _names_other(words, [word for word in words if not is_small(word)])


# Japanese


def _is_own_topic(text: str, names: Sequence[str]) -> bool:
    """The topic before は or が: the organization, something of its own, a time; left out, it is the organization."""
    found = _TOPIC.search(text)
    if found is None:
        return True
    topic = found[1]
    if _says("others_unspaced", topic) or _is_of_others(topic, names):
        return False
    if _says("nature_unspaced", topic) and not _says("done_unspaced", text):
        return False  # `木は1年に22kgのCO2を吸収します`
    if found[2] == "が" and (described := _DESCRIBING.search(text[found.end() :])):
        return _says("things_unspaced", described[1])
    if "を" in topic:  # a clause that describes the last noun: `ボイラーを導入した酪農場は`
        head = _HEAD.search(topic)
        return head is not None and _says("things_unspaced", head.group())
    return _says("marks_unspaced", topic) or _says("things_unspaced", topic) or any(name in topic for name in names)


def _is_of_others(topic: str, names: Sequence[str]) -> bool:
    """`陶器の廃棄物`, not `当社の廃棄物`, `工場の電力`, `40%の電力`: what stands before `の` is no own word."""
    *owners, _ = topic.rpartition("、")[2].split("の")
    return any(
        not (
            _FIGURE.search(one)
            or _says("marks_unspaced", one)
            or _says("bodies_unspaced", one)
            or _says("things_unspaced", one)
            or _says("places_unspaced", one)
            or any(name in one for name in names)
        )
        for one in owners[:1]
        if len(one) > 1
    )


def _says(name: str, text: str) -> bool:
    return bool(text) and compiled(_WORDS[name]).search(text) is not None
