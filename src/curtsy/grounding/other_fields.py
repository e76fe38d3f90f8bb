"""Whether a quote says that its value belongs to another field: a label of another field, another unit, a photographer
instead of an author, a house number instead of a year. It holds also where nothing is known about the page. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from curtsy.grounding.dates import Stated
from curtsy.grounding.relation import FIELD_WORDS, has_word, is_money, is_of_price, is_people, name_parts, words_of
from curtsy.grounding.schema import Leaf

_LABEL = re.compile(r"(?:^|[\n\t|;])\s{0,4}([^\d\s:：\n\t|;][^:：\n\t|;]{0,39})[:：]\s?[^:：\n\t|;]{0,20}\Z")
_LINE_REACH = 80
_OTHER_LABELS = frozenset(
    (
     "width", "breite", "largeur", "ancho", "larghezza", "breedte", "szerokość", "šířka", "leveys", "bredde",
     "bredd", "szélesség", "lățime", "genişlik", "πλάτος", "ширина", "العرض", "عرض", "רוחב", "चौड़ाई",
     "กว้าง", "lebar", "幅", "宽度", "寬度", "너비",
    )
)  # fmt: skip
_PHOTO = re.compile(
    r"\b(?:photo|photograph|image|picture|illustration|foto|fotos|bild|bilder|kuva|kép|fotoğraf|φωτογραφ\w*|фото|ilustra\w+|"
    r"slika|hình|gambar)\w{0,8}(?:\s(?:by|von|de|di|par|af|av|przez))?\s?[:/©]"
    r"|\b(?:foto|photo|bild|foto's)(?:graph\w*|graf\w*)?\s(?:by|von|de|di|par|af|av|door)\s"
    r"|(?:写真|撮影|摄影|攝影|図|图)\s?[:：/／・]|사진|صورة:|تصوير|عکس|צילום|ภาพ\s?:",
    re.IGNORECASE,
)
_TEASER = re.compile(
    r"\b(?:read (?:also|more|next)|see also|related|more on|lire aussi|voir aussi|lesen sie auch|mehr zum thema|"
    r"siehe auch|"
    r"leia (?:também|mais)|lea también|leer más|leggi anche|lees ook|czytaj (?:też|także)|čtěte také|lue myös|læs også|"
    r"les også|läs också|читайте также|читайте також|ayrıca oku\w*|baca juga|xem thêm|citește și)\b|"
    r"関連記事|相关阅读|相關新聞|"
    r"관련 ?기사|اقرأ أيضا",
    re.IGNORECASE,
)
_EDITED = re.compile(
    r"(?:编辑|編輯|編集|责编|責任編輯)\s?[:：]\s?\Z|\b(?:editor|edited by|translat\w+|übersetz\w+)\s?:?\s\Z", re.I
)
_STREET = (
    r"(?:\w{0,30}(?:straße|strasse|str\.|weg|platz|allee|gasse|straat|laan|gatan|vägen|gade|vej|gata|veien|katu|tie|utca|"
    r"ulica)|(?:via|viale|piazza|rue|avenue|boulevard|calle|avenida|rua|praça|ul\.|ulica|улица|ул\.|вул\.|str\.)\s[^\W\d_]{2,30})"
)
_HOUSE = re.compile(rf"\b{_STREET},?\s\Z", re.IGNORECASE)
_CODE = re.compile(
    r"(?:\b(?:no|nr|nº|n°|ref|order|room|suite|invoice|bestellung|zimmer|tel|fax)\.?\s?|№\s?|#\s?)\Z", re.I
)
_FAX = re.compile(
    r"(?:\b(?:tele)?fax|факс|télécopie|传真|傳真|ファ(?:ッ)?クス|팩스|فاکس|فاكس|φαξ|פקס)\W{0,4}\Z", re.IGNORECASE
)
_STARTS = frozenset(("start", "starts", "startdate", "begin", "begins", "from", "since", "opening"))
_ENDS = frozenset(("end", "ends", "enddate", "until", "through", "closing"))
_TO = re.compile(
    r"[\s,()]{0,3}(?:[^\W\d_]{1,12}\.?,?\s)?(?:[-–—~〜～→]|to|bis|au|al|a|até|do|tot|till|until|und|and|et|do|по|к|から|至|부터)?[\s,()]{0,3}"
    r"(?:[^\W\d_]{1,12}\.?,?\s)?",
    re.IGNORECASE,
)
_OLD_PRICE = re.compile(
    r"\b(?:statt|anstatt|was|instead of|au lieu de|antes|invece di|in plaats van|zamiast|místo|вместо|замість|"
    r"old price|alter preis|ancien prix)\s?:?\s?[^\w\s]{0,2}\Z",
    re.IGNORECASE,
)
_OUT_OF = re.compile(r"\d\s?(?:/|out of|of|von|sur|su|van|de|av|af|z|из|из)\s?\Z", re.IGNORECASE)
_RATINGS = frozenset(("rating", "ratings", "score", "stars", "grade", "ratingvalue", "note"))
_BESTS = frozenset(("best", "max", "maximum", "scale", "bestrating", "out"))
#: unit -> dimension; fields name their unit (`weight_kg`)
_UNITS = {
    **dict.fromkeys(("kg", "g", "mg", "t", "lb", "lbs", "oz", "кг", "г", "公斤", "克"), "mass"),
    **dict.fromkeys(("km", "m", "cm", "mm", "mi", "ft", "км", "м", "см", "公里", "米"), "length"),
    **dict.fromkeys(("m2", "m²", "km2", "km²", "ha", "㎡", "га", "м²"), "area"),
    **dict.fromkeys(("kw", "mw", "gw", "w"), "power"), **dict.fromkeys(("kwh", "mwh", "gwh", "wh"), "energy"),
    **dict.fromkeys(("l", "ml", "cl", "dl"), "volume"),
    **dict.fromkeys(("hours", "minutes", "h", "min", "days"), "time"),
}  # fmt: skip
_SAME = {"кг": "kg", "г": "g", "公斤": "kg", "克": "g", "км": "km", "м": "m", "см": "cm", "公里": "km", "米": "m",
         "m²": "m2",
         "㎡": "m2", "м²": "m2", "km²": "km2", "га": "ha", "h": "hours", "min": "minutes", "lbs": "lb"}  # fmt: skip
_UNIT = re.compile(r"[ \u00a0\u202f]?([^\W\d_]{1,7}[2²]?|㎡)(?!\w)")


def label_before(text: str, start: int) -> str | None:
    """Return the label of the line or cell up to `start`: `Weight` of `Weight: about 3`."""
    found = _LABEL.search(text[max(0, start - _LINE_REACH) : start])
    return found[1] if found else None


def is_of_other_field(leaf: Leaf, text: str, start: int, end: int, first: int) -> bool:
    """Return whether text[start:end] is the value of another field; the quote begins at `first`."""
    if is_people(leaf):
        before = text[max(first, start - _LINE_REACH) : start]
        return any(pattern.search(before) for pattern in (_PHOTO, _TEASER, _EDITED))
    if leaf.type not in ("integer", "number", "date"):
        return False
    label = label_before(text[max(0, start - _LINE_REACH) : start], min(start, _LINE_REACH))
    if label is not None and _names_other(leaf, label):
        return True
    if is_money(leaf) and _OLD_PRICE.search(text, max(first, start - 30), start):
        return True
    return is_money(leaf) and not is_of_price(text[text.rfind("\n", 0, start) + 1 : end])


def is_other_number(leaf: Leaf, text: str, start: int, end: int) -> bool:
    """Return whether a number is the number of a house or an order, or has another unit than the field."""
    before = text[max(0, start - 50) : start]
    if _CODE.search(before) or (_HOUSE.search(before) and not has_word(before, words_of(leaf))):
        return not _is_code_field(leaf)
    names = {*name_parts(leaf.path)}
    if names & _RATINGS and not names & _BESTS and _OUT_OF.search(before):
        return True
    own = _unit_of(leaf)
    found = _UNIT.match(text, end)
    if own is None or found is None:
        return False
    unit = found[1].lower()
    return _UNITS.get(unit) == _UNITS[own] and _SAME.get(unit, unit) != own


def is_fax(leaf: Leaf, before: str) -> bool:
    """Return whether a phone number after this text is a fax number, and the field is not."""
    return _FAX.search(before[-20:]) is not None and "fax" not in name_parts(leaf.path)


def is_other_end(leaf: Leaf, stated: Stated, known: Sequence[Stated], quote: str) -> bool:
    """Return whether a date is the end of a range and the field its start, or the other way round."""
    names = {*name_parts(leaf.path)}
    neighbors = [one for one in known if one is not stated]
    if names & _STARTS and not names & _ENDS:
        return any(one.end <= stated.start and _TO.fullmatch(quote, one.end, stated.start) for one in neighbors)
    if names & _ENDS and not names & _STARTS:
        return any(stated.end <= one.start and _TO.fullmatch(quote, stated.end, one.start) for one in neighbors)
    return False


@lru_cache(maxsize=512)
def _unit_of(leaf: Leaf) -> str | None:
    return next((name for name in reversed(name_parts(leaf.path)[1:]) if name in _UNITS), None)


def _is_code_field(leaf: Leaf) -> bool:
    return bool(
        {"no", "nr", "number", "code", "id", "sku", "order", "room", "house", "street"} & {*name_parts(leaf.path)}
    )


@lru_cache(maxsize=4096)
def _names_other(leaf: Leaf, label: str) -> bool:
    """Return whether a label names a field that is known, and not this one."""
    own = words_of(leaf)
    if not any(name in FIELD_WORDS for name in name_parts(leaf.path)) or has_word(label, own):
        return False
    return has_word(label, _OTHERS)


_MEASURES = (
    "employees", "members", "revenue", "profit", "weight", "height", "length", "area", "population", "rating", "phone",
    "founded", "discount", "duration", "salary", "distance", "temperature",
)  # fmt: skip
_OTHERS = frozenset(
    word
    for name in _MEASURES
    for word in FIELD_WORDS.get(name, ())
    if len(word) > 3
) | _OTHER_LABELS  # fmt: skip
