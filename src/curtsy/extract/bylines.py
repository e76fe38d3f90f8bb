"""Names in bylines: `By Nora Field and Tom Alder, staff writers`, `Von Käthe Brandt`, `文：山田花子`. Pure functions.

names_in         the names of a visible byline; empty if it is not a byline
handle_in        the name of a user in an element that is nothing but an author
is_placeholder   `admin`, a template variable, a URL, the name of the site: no author
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from curtsy.extract import credits
from curtsy.extract.article_words import WORDS, any_of
from curtsy.extract.credits import LABEL
from curtsy.grounding.cldr import MONTHS

_MAX_BYLINE = 160
_MAX_NAME = 60
_MAX_WORDS = 6
_BARE_LABEL = re.compile(rf"^\W{{0,4}}{any_of('bare_labels')}\b[: ]{{0,3}}", re.IGNORECASE)
#: where the names end
_CUT = re.compile(
    r" [|•·–—/] |[|•·\n\t;(\[]| [–—-] |\d| @|(?<=\S)@" + rf"|\b{any_of('ends')}\b| {any_of('joins')} ", re.IGNORECASE
)
_BETWEEN = re.compile(rf", ?(?:and|und|et) |, ?| {any_of('ands')} | ?& ?|[、，]")
#: `Richard (R.J.) Alder`
_NICKNAME = re.compile(r" \([^()\d]{1,20}\) (?=[^\W\d_])")
#: `Nora Field (Text) und Tom Alder (Fotos)`
_OWN_ROLE = re.compile(rf" \((?:{any_of('labels')})\)", re.IGNORECASE)
_OTHER_ROLE = re.compile(rf"(?:, ?| {any_of('ands')} |^)[^,()|]{{3,40}} \({any_of('other_credits')}\)", re.IGNORECASE)
#: `, de São Paulo`, `, aus Berlin`
_FROM = re.compile(r"(?:de|da|do|du|des|en|em|aus|à|in|from|i|iz|z) ")
_LAST_WORD = re.compile(r"(?:^| )([^\W\d_]{3,12})[., ]{0,3}$")
#: a company is not a person: `Alder Media Inc.`
_COMPANY = re.compile(
    r"(?:\b(?:Inc|Ltd|LLC|GmbH|Corp|Corporation|Co|Pty|PLC|S\.?A|S\.?r\.?l|B\.?V|AG|KG)\.?|株式会社|有限会社|有限公司|주식회사)$"
    r"|^株式会社|^\(주\)"
)
_MONTHS_OF_PEOPLE = frozenset(("april", "may", "june", "julia", "august", "augusto", "marta", "jan", "mai", "mar"))
_TEMPLATE = re.compile(r"[{}<>\[\]]|\$\{|%\w{1,40}%|[a-z]_[a-z]{1,30}_[a-z]")
#: papers and portals in Chinese and Japanese: `证券时报网`
_SOURCE = re.compile(
    r"(?:网|網|时报|日报|晚报|早报|快报|新闻|新聞|財経|财经|综合|在线|客户端|编辑部|編集部|通讯社|通信社|电视台|频道|公众号)$"
)
#: a sentence, another label (`责任编辑：`), the name of a photographer
_NO_UNCASED = re.compile(r"[。！？「」：:]|[摄攝]$")
_HANDLE = re.compile(r"(?=[^a-zA-Z]{0,9}[a-zA-Z])\w[\w.\-]{2,24}")
_ADDRESS = re.compile(r"https?:|www\.|^/|@|\.(?:com|org|net|test|html?|php)\b", re.IGNORECASE)


def is_placeholder(name: str, others: Iterable[str] = ()) -> bool:
    """Return whether it is no author; `others` are names of the site and its publisher."""
    plain = _plain(name)
    if not plain or len(plain) > 100 or not any(char.isalpha() for char in plain):
        return True
    if plain in WORDS["placeholders"] or plain.split()[0] in ("admin", "webmaster"):
        return True
    if _TEMPLATE.search(name) or _ADDRESS.search(name) or (_is_uncased(plain) and _SOURCE.search(plain)):
        return True
    return any(_same(plain, other) for other in others if other)


def _same(plain: str, other: str) -> bool:
    wanted = _plain(other)
    squeezed, whole = wanted.replace(" ", ""), plain.replace(" ", "")
    if _is_uncased(whole) and squeezed.startswith(whole):
        return True  # 网易 and 网易新闻
    return bool(whole) and (
        whole == squeezed or whole == squeezed.partition(".")[0] or whole.removeprefix("the") == squeezed
    )


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(" .,:;-–|")


def is_company(name: str) -> bool:
    return _COMPANY.search(name.strip()) is not None


def _is_month(word: str) -> bool:
    """Whether it is the name of a month, and not of a person: May, April, June."""
    plain = word.casefold().strip(".,")
    return plain in MONTHS and plain not in _MONTHS_OF_PEOPLE


def is_person(name: str) -> bool:
    """Return whether a name that is also the name of the site reads like that of a person: `Nora Field`."""
    words = name.split()
    return 2 <= len(words) <= 3 and _is_name(name, 2) and WORDS["site_words"].isdisjoint(map(str.casefold, words))


def people(value: str, others: Iterable[str] = ()) -> list[str]:
    """Return the names of a list in one text, without what follows them: `Nora Field and Tom Alder, THE POST`.

    Empty: it is not a list of names.
    """
    parts = [part.strip() for part in _BETWEEN.split(value) if part.strip()]
    found = [part for part in parts if not _is_source(part, others)]
    if len(parts) < 2 or not found or parts[: len(found)] != found:
        return []
    return found if all(_is_name(part, 2) and not _is_uncased(part) for part in found) else []


def _is_source(part: str, others: Iterable[str]) -> bool:
    """Whether it is an agency, a paper or a role: `CNN`, `USA TODAY`, `Staff Writer`, the name of the site."""
    words = part.split()
    is_short = len(words) <= 2 and part.isupper() and all(len(word) <= 5 for word in words)
    is_role = any(word.casefold().strip(".,") in WORDS["not_names"] for word in words)
    return is_short or is_role or is_placeholder(part, others)


def without_label(text: str) -> str:
    """`By Nora Field` -> `Nora Field`."""
    text = " ".join(text.split())
    found = LABEL.match(text) or _BARE_LABEL.match(text)
    return text[found.end() :] if found and found.end() < len(text) else text


def is_labelled(text: str) -> bool:
    return LABEL.match(text) is not None


def names_in(text: str, *, marked: bool = False) -> list[str]:
    """Return the names of a byline. `marked`: a class or attribute says that it is one, so that one word is enough."""
    lines = _lines(text)
    if not lines or len(text) > _MAX_BYLINE:
        return []
    if len(lines) > 1 and all(_is_name(line, 2) and not _is_uncased(line) for line in lines):
        return lines
    least = 1 if marked and (len(lines) == 1 or _is_uncased(lines[0])) else 2
    said = " | ".join(lines)
    if names := credits.reported(said) or [name for *_, many in credits.in_brackets(said) for name in many]:
        return names
    text = without_label(_own_credit(said)).strip("[]【】《》")
    nickname = _NICKNAME.search(text)
    ends = [_CUT.search(text, nickname.end() if nickname else 0), credits.OTHER.search(text)]
    cut = min((one for one in ends if one), key=re.Match.start, default=None)
    head = text[: cut.start()] if cut else text
    if cut and cut[0].isdigit() and (month := _LAST_WORD.search(head)) and _is_month(month[1]):
        head = head[: month.start()]  # `Nora Field Nov 5`
    found: list[str] = []
    for part in _BETWEEN.split(head):
        name = part.strip(" .,:;-–|'\"")
        if not _is_name(name, least) or (found and (_is_place(found[0], name) or _FROM.match(name))):
            break  # a role, a place, or the rest of a sentence
        found.append(name)
    rest = text[len(head) :] if cut else ""
    return found if found and (marked or (_is_quiet(head, found) and len(rest) < 80)) else []


def _own_credit(text: str) -> str:
    """Leave out what comes before the credit of the author: `Fotos: Karl Braun, Text: Anna Wald`."""
    return _OWN_ROLE.sub("", _OTHER_ROLE.sub("", text[next(credits.own(text), 0) :]))


def _lines(text: str) -> list[str]:
    """The lines of a byline; a label that is a line of its own belongs to the next one."""
    lines = [" ".join(line.split()) for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and without_label(f"{lines[0]} x") == "x":
        lines[:2] = [" ".join(lines[:2])]
    return lines


def handle_in(text: str) -> list[str]:
    """Return the name of a user that has no capitals or has digits, without a label: `rasos`, `nora_f01`."""
    name = without_label(" ".join(text.split()))
    return [name] if _HANDLE.fullmatch(name) and name.casefold() not in WORDS["not_names"] else []


def _is_place(first: str, name: str) -> bool:
    """A word behind a full name (`Markus Balser, Berlin`), or a name in another script (`田中宏昌，Harbor`)."""
    return not _is_uncased(name) and (_is_uncased(first) or (" " in first and " " not in name))


def _is_quiet(head: str, found: list[str]) -> bool:
    """Behind the names, a line without a mark has only a role."""
    tail = head[head.rfind(found[-1]) + len(found[-1]) :]
    return len(tail.split()) <= 6 and "." not in tail.strip(" .")


def _is_name(name: str, least: int) -> bool:
    if not 2 <= len(name) <= _MAX_NAME or any(char.isdigit() for char in name):
        return False
    if _is_uncased(name):
        return (
            len(name) <= 30
            and (least == 1 or sum(map(str.isalpha, name)) <= 10)  # vowel signs are no letters
            and not _NO_UNCASED.search(name)
            and not _SOURCE.search(name)
            and name not in WORDS["date_labels"]
        )
    words = name.split()
    if not least <= len(words) <= _MAX_WORDS or (len(words) == 1 and _is_month(name)):
        return False
    if any(word.casefold().strip(".,'’") in WORDS["not_names"] for word in words):
        return False
    proper = [word for word in words if word.casefold() not in WORDS["particles"]]
    return bool(proper) and all(_is_proper(word) for word in proper)


def _is_proper(word: str) -> bool:
    first = word.lstrip("'’\"“(")[:1]
    return first.isupper() and not re.search(r"[!?:=*#%+]", word)


def _is_uncased(text: str) -> bool:
    """Scripts without capitals: Han, kana, Hangul, Arabic, Hebrew, Devanagari, Thai."""
    letters = [char for char in text if char.isalpha()]
    return bool(letters) and all(char.lower() == char.upper() for char in letters)
