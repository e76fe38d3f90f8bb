"""Negations and qualifying words next to a value, in many languages.

    is_negated     a negation before the value, in its sentence: `not`, `ne ... pas`, `keine`, `не была`
    is_denied      a negation after it: `1998年ではありません`, `1998'de kurulmadı`, `1998 nicht gegründet`
    is_hedged      a word directly before the value changes what it means: `nearly`, `former`

All texts are folded (`folded_text`). No I/O; nothing raises.
"""

from __future__ import annotations

import re
import unicodedata

from curtsy.grounding.folded_text import plain

_REACH = 60


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _words(text: str) -> str:
    """A pattern of words, in the form of folded text."""
    return "|".join(dict.fromkeys(_composed(plain(word)) for word in text.split()))


#: between a negation and what it negates there may be two words, and some of these
_SMALL = _words("""
    a an the as to in of by for at on any be been being yet year ein eine einen einem einer eines der die das den
    dem als zu im worden jahr jahre un une le la les de du des en à l' été année el los las año fue di il è sono
    stata stato nel nella anno es een het jaar em na foi ano no w we do roku v ve se si je to byla byl bylo była
    był było в во на до у з году году была был было були был е през το του τη τις στη στο στην στον στην ήταν έτος
    في عام سنة vuonna a az i år blev ble blivit vào năm được pada di tahun a fost în anul lett volt је био била
""")
#: in all languages
_COMMON = _words("""
    not never neither nor without cannot hardly isn't aren't wasn't weren't don't doesn't didn't hasn't haven't
    hadn't can't won't wouldn't couldn't shouldn't nicht kein keine keinen keiner keinem keines nie niemals ohne
    sans jamais aucun aucune sin nunca senza ikke inte zonder niet geen ingen inga ekki bez nem nincs nema nemaju
    nije nisu nimamo nemajo nav ilman tiada walang hakuna tidak bukan tanpa stopped ceased no não sem не нет без
    ні δεν χωρίς nélkül không fără ليس لا لم لن ليست بدون नहीं בלי לא нема няма neturi nėra nemá nemají نیست
""")
#: words that mean something else in other languages
_OF_LANGUAGE = {
    "fi": "ei en et emme ette eivät eikä",
    "et": "ei pole",
    "ro": "nu",
    "cs": "ne nebyl nebyla nebylo nebyli není nejsou nemáme",
    "sk": "nie nebol nebola nebolo nie",
    "sl": "ni niso nismo",
    "hr": "nismo nije",
    "lt": "ne nebuvo",
    "lv": "ne nebija",
    "sq": "nuk",
    "el": "δε μη μην όχι",
    "vi": "chưa chẳng",
    "he": "אין לא",
    "eu": "ez",
    "ga": "ní níor",
    "mt": "mhux ma",
    "ms": "tak",
    "cy": "ddim nid",
    "fil": "hindi",
    "tl": "hindi",
    "ka": "არ",
    "sw": "si siyo",
    "hu": "sem",
    "da": "ej",
    "nb": "ei",
    "nn": "ikkje ei",
    "ca": "cap",
    "ar": "ما غير",
    "hy": "ոչ",
}  # fmt: skip
_UNLESS = _words("""
    only just merely simply least doubt wonder less fewer better other later earlier until far including hesitate
    forget miss nur zuletzt bara alleen seulement solo sólo weniger moins mindre minder menos meno färre færre
    менее меньше mniej méně kevesebb менш ainoastaan
""")
_PART = r"[^\s.,;:!?()]+"


def _before(words: str) -> re.Pattern[str]:
    gap = rf"(?:\s+(?:{_SMALL})(?![^\W_]))"
    return re.compile(
        rf"(?<![^\W_])(?:(?:{words}|(?<!sitez )pas|(?:myth|false|untrue|wrong|rumou?r) that"
        rf"|non(?!-| (?:profit|governmental|commercial)))(?![^\W_]))"
        rf"(?! (?:(?:{_UNLESS})(?![^\W_])|more than\b)){gap}{{0,3}}(?:\s+{_PART}{gap}{{0,3}}){{0,2}}[^\w.,;:!?()]*$"
    )


_NEGATION = _before(_COMMON)
_NEGATIONS = {language: _before(f"{_COMMON}|{_words(words)}") for language, words in _OF_LANGUAGE.items()}
#: scripts without spaces
_ADJOINED = {
    "zh": re.compile(r"(?:不是|并非|並非|没有|沒有|从未|從未|未曾|不在)[^，。、；：！？,.;:!?\s]{0,8}$"),
    "th": re.compile(_composed(plain("(?:ไม่ได้|ไม่ใช่|ไม่มี|มิได้)")) + r"[\u0e00-\u0e7f]{0,20}\s?$"),
}


def _after(gap: str, words: str) -> re.Pattern[str]:
    return re.compile(
        rf"[^,.;:!?、。，．।\n]{{0,{gap}}}?(?:{'|'.join(_composed(plain(one)) for one in words.split())})"
    )


_DENIALS = {
    "ja": _after(
        "12", "ではありません ではない じゃない でない いません ありません ませんでした なかった ていない おりません"
    ),
    "ko": _after("12", "않 못하 못했 못한 아닙니다 아니다 아니며 아니고 없습니다 없다 없었"),
    "hi": _after("25", "नहीं"),
    "mr": _after("25", "नाही नव्हत"),
    "ne": _after("25", "छैन होइन थिएन"),
    "gu": _after("25", "નથી"),
    "pa": _after("25", "ਨਹੀਂ"),
    "bn": _after("25", "নয় নেই হয়নি"),
    "ta": _after("25", "இல்லை அல்ல"),
    "te": _after("25", "లేదు కాదు"),
    "kn": _after("25", "ಇಲ್ಲ ಅಲ್ಲ"),
    "ml": _after("25", "അല്ല ഇല്ല"),
    "ur": _after("25", "نہیں"),
    "fa": _after("25", "نشد نیست نبود نکرد ندار"),
    "tr": re.compile(
        r"'?\w{0,24}(?:\s\w{1,24}){0,2}?\s(?:değil|yok|(?!komedi)\w{2,20}?(?:m[ae]di|m[ae]miş|m[iuü]yor))\w{0,8}"
        r"\s{0,3}(?:[.!?]|$)"
    ),
    "de": re.compile(r"\s(?:nicht(?! nur)|niemals)\b"),
    "nl": re.compile(r"\sniet\b"),
    "sv": re.compile(r"\sinte\b"),
    "da": re.compile(r"\sikke\b"),
    "nb": re.compile(r"\sikke\b"),
}  # fmt: skip
#: `40名しかいません`, `40명밖에 없습니다`: only
_ONLY_AFTER = re.compile("しか|밖에")
_DENIAL_REACH = 60
#: words that change the meaning of what follows directly
_HEDGE = re.compile(
    r"\b(?:nearly|almost|virtually|practically|barely|wrongly|falsely|allegedly|reportedly|supposedly|former(?:ly)?|second"
    r"|third|fourth|unlike|except|instead of|rather than|fast|beinahe|nahezu|angeblich|ehemalige[rn]?|presque"
    r"|ancien(?:ne)?|casi|quasi|bijna|nästan|nesten)[\s-]+$"
)
#: `no` in Portuguese
_IN_THE = re.compile(r"\bno\b")
_HOUSE_NUMBER = re.compile(r"\bno\.? ?$")


def _own(language: str | None) -> str:
    return (language or "").lower().replace("_", "-").partition("-")[0]


def is_hedged(text: str, start: int, least: int = 0) -> bool:
    """Return whether a word directly before `start`, not before `least`, weakens or changes what follows."""
    return _HEDGE.search(text[max(least, start - _REACH) : start]) is not None


def is_negated(text: str, start: int, least: int = 0, language: str | None = None) -> bool:
    """Return whether what begins at `start` is negated directly before, but not before `least`."""
    before = _composed(text[max(least, start - _REACH) : start])
    own = _own(language)
    if own == "pt":
        before = _IN_THE.sub("em", before)
    if text[start : start + 1].isdigit():
        before = _HOUSE_NUMBER.sub("", before)
    adjoined = _ADJOINED.get(own)
    if adjoined is not None and adjoined.search(before):
        return True
    return _NEGATIONS.get(own, _NEGATION).search(before) is not None


def says_no(text: str, language: str | None) -> bool:
    """Return whether a short statement ends in what it negates: `nicht auf Lager`, `n'est pas végan`, `没有库存`."""
    said = text.rstrip(" .!。！")
    denial = _DENIALS.get(_own(language))
    is_denial = denial is not None and denial.search(_composed(text)) is not None
    return is_denial or is_negated(said, len(said), language=language)


def is_denied(text: str, end: int, language: str | None) -> bool:
    """Return whether what ends at `end` is negated directly after, in a language whose negations are there."""
    denial = _DENIALS.get(_own(language))
    if denial is None:
        return False
    after = _composed(text[end : end + _DENIAL_REACH].partition("\n")[0])
    found = denial.match(after)
    return found is not None and _ONLY_AFTER.search(found[0]) is None
