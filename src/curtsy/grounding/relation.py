"""Whether a quote relates to its field: label evidence for the quotes of a language model.

A model can quote any line of a page. A quote relates to a field if one of these holds:

    form       the value has the form of its field: an e-mail address, a phone number, a price with its currency
    markup     a class or attribute marks the element as a price
    titles     a name, title or headline is in the title or main heading of the page
    people     an author is in a byline of the page
    labels     words of the field are in the quote, in the labels of its table cell, in a short line right before it, or
               in the heading above it

The words of a field are those of its path, of its `hints`, and `field_words.toml`. Pure.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any

from curtsy.core.claims import Source
from curtsy.grounding.currencies import has_money
from curtsy.grounding.dates import dates, value_of
from curtsy.grounding.folded_text import is_whole, plain
from curtsy.grounding.json_pointer import keys
from curtsy.grounding.numbers import decimal, numbers
from curtsy.grounding.schema import Leaf


def _composed(text: str) -> str:
    """Return folded text in which an accent is part of its letter."""
    return unicodedata.normalize("NFC", plain(text))


FIELD_WORDS: dict[str, tuple[str, ...]] = {
    name: tuple(_composed(word) for word in text.split())
    for name, text in tomllib.loads((Path(__file__).parent / "field_words.toml").read_text("utf-8")).items()
}
FIELD_PRICE = frozenset(FIELD_WORDS["price"])
_WORD = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*")
#: scripts without spaces, and those whose vowel signs are no letters to `re`: their words are searched as texts
_UNSPACED = re.compile("[\u0900-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: words of field names that identify no field
_EMPTY = frozenset(
    (
        "the",
        "of",
        "a",
        "is",
        "has",
        "text",
        "value",
        "values",
        "item",
        "items",
        "data",
        "number",
        "count",
        "total",
        "type",
        "id",
        "list",
        "main",
        "full",
        "info",
    )
)
_TITLES = frozenset(("name", "title", "headline"))
#: `van`, `de`; initials and `Jr.`; a sentence has more small words
_PARTICLES = frozenset(
    [
        "van",
        "von",
        "der",
        "den",
        "de",
        "da",
        "di",
        "del",
        "la",
        "le",
        "el",
        "bin",
        "ibn",
        "al",
        "y",
        "e",
        "und",
        "and",
        "et",
        "zu",
    ]
)
_MAX_INITIAL, _MIN_PROSE = 3, 4
_BRANDS = frozenset(("brand", "manufacturer", "maker"))
_HEADLINES = frozenset(("title", "headline"))
_PEOPLE = frozenset(("author", "authors", "byline", "writer", "writers"))
_MONEY = frozenset(("price", "cost", "amount", "fee", "msrp", "salary", "lowprice", "highprice", "saleprice", "prices"))
#: characters of a line that can label the next one, and of a heading
_SHORT_LINE = 60
#: lines above a quote in which its heading is searched
_MAX_UP = 80
_LABELS_UP = 2
#: words next to a date in a line that is nothing else
_MAX_BESIDE_DATE = 2
_MIN_PREFIX = 3
_MAX_NAME_WORDS = 8
#: a value with this number of words is a sentence, which can name its field itself
_SENTENCE_WORDS = 5
_MAX_MONEY = 15
#: words of field names that count only if there are no others
_LOOSE = frozenset(("year", "date", "day", "on", "at", "number", "count", "total", "amount", "contact", "value"))
_CONTACTS = frozenset(("email", "mail", "url", "website", "link", "homepage", "phone", "telephone"))
#: characters of a line that may be a byline without a word for it
_BYLINE = 40
_CONTACT_FORM = re.compile(r"@|\d{2}|\bat\b|\.\w{2}|https?:|www\.", re.IGNORECASE)
_SMALL = frozenset(
    ("the", "of", "our", "for", "and", "a", "an", "der", "die", "das", "für", "le", "la", "les", "de", "el", "los")
)
_TELLS = re.compile(r",? (?!by\b|and\b|or\b|und\b|et\b|y\b)[^\W\d_A-Z]{2,}")
_INTRODUCES = re.compile(
    r"\b(?:we are|this is|wir sind|nous sommes|somos|siamo|wij zijn|the people of|the team of|here at)\s"
    r"(?:the |die |der )?$"
    r"|私たちは$|当社は$|우리는\s?$",
    re.IGNORECASE,
)
_LABEL = re.compile(r"\s{0,4}[^\s:：\n][^:：\n]{0,39}[:：]\s")
_NOT_PRICE = re.compile(
    r"\b(?:shipping|delivery|deposit|subscribe|subscription|per month|a month|monthly|/ ?mo|you save|save up|discount|"
    r"coupon|voucher|paid|elsewhere|over|versand|versandkosten|lieferung|livraison|remise|rabatt|envío|spedizione|sconto|verzending|verzendkosten|"
    r"korting|rabat|sleva|wysyłk\w|dostaw\w|frakt|toimitus\w*|доставк\w|скидк\w|indirim|kargo)\b|送料|運費|运费|배송비|割引|折扣|할인|הנחה|خصم|تخفیف",
    re.IGNORECASE,
)
#: a company that made the website or sells its tickets is not the subject
_AGENCY = re.compile(
    r"\b(?:web(?:site|design|hosting)?|site|hosting|hosted|theme|template|design(?:ed)?|developed|made|built|powered|"
    r"photos?|tickets?)\s?(?:by\b|:)|\b(?:diseño web|webdesign|création(?: du site)?|réalisation(?: du site)?|"
    r"realizzazione|hébergement|hébergeur|umsetzung|gestaltung|alojamiento|website von|"
    r"our (?:partner|agency|supplier))\b|制作:|サイト制作",
    re.IGNORECASE,
)
_MAX_LINE = 400
_DEADLINE = re.compile(
    r"\b(?:register(?:ed)? by|apply by|deadline|closing date|early bird|until|before|last year(?:'s|’s)?|published|"
    r"posted|updated|anmeldeschluss|anmeldung bis|inscri\w{2,9} avant|avant le|antes del?|entro il)\b|締切|締め切り",
    re.IGNORECASE,
)
#: sections of sites: names of menus, not of things
_SECTIONS = frozenset(
    ("home", "about", "about us", "contact", "contact us", "news", "blog", "calendar", "events", "jobs", "careers",
     "vacancies", "shop", "store", "products", "search", "menu", "similar jobs", "related products", "similar products",
     "related events", "startseite", "über uns", "kontakt", "aktuelles", "kalender", "veranstaltungen", "karriere",
     "stellenangebote", "produkte", "accueil", "à propos", "actualités", "agenda", "calendrier", "événements",
     "offres d'emploi", "boutique", "produits", "inicio", "quiénes somos", "contacto", "noticias",
     "calendario", "eventos", "empleo", "tienda", "productos",
     "ホーム", "会社概要", "お問い合わせ", "ニュース", "イベント", "採用情報", "商品一覧")
)  # fmt: skip
#: words next to an amount that do not name a thing
_BESIDE_PRICE = frozenset(
    ("now", "only", "just", "from", "sale", "buy", "add", "cart", "basket", "each", "incl", "including", "excl", "tax",
     "vat", "today", "special", "offer", "deal", "in", "stock", "save", "ab", "nur", "jetzt", "inkl", "zzgl", "mwst",
     "kaufen", "seulement", "ttc", "ht", "dès", "acheter", "desde", "solo", "ahora", "comprar", "iva", "税込", "税別")
)  # fmt: skip
_MAX_NAMED = 5
_PHONES = frozenset(("phone", "telephone", "tel", "mobile", "fax"))
_MAILS = frozenset(("email", "mail"))
_MIN_DIGITS = 5
#: `ext. 12`, `1-800-FLOWERS`
_MAX_LETTERS = 9
#: characters before and after the main heading in which a date or a price may have no label
_BEFORE_HEADING, _AFTER_HEADING, _AFTER_HEADING_PRICE = 400, 800, 2_500
_MIN_TITLE = 3
#: of the letters of a title, or of its part
_LEAST_SHARE = 0.4
_TITLE_PARTS = re.compile(r"\s[|–—·»:/-]\s|[|»:]|\s::\s")
_STARTS = frozenset(("start", "starts", "startdate", "begin", "begins"))
_UPDATED = re.compile(
    r"\b(?:updated|modified|revised|aktualisiert|mis à jour|actualizado|aggiornato|bijgewerkt|zaktualizowano|обновлено)"
    r"\b|更新",
    re.IGNORECASE,
)


def relates(leaf: Leaf, value: Any, source: Source, start: int, end: int) -> bool:
    """Return whether the quote source.text[start:end] relates to the field: the line of it that has the value does.

    What structured data states under a key named like the field needs no other evidence.
    """
    if source.states(leaf.path, value) and not _is_other_price(leaf, source.text[start:end]):
        return True
    lines = _lines_of(value, source.text, start, end)
    if any(_line_relates(leaf, value, source, first, last) for first, last in lines):
        return True
    if lines and any(_has_own_label(source, first, last) for first, last in lines):
        return False
    return (start, end) not in lines and _line_relates(leaf, value, source, start, end)


def _is_other_price(leaf: Leaf, quote: str) -> bool:
    return is_money(leaf) and leaf.type != "string" and "\n" not in quote and not is_of_price(quote)


def _lines_of(value: Any, text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the lines of a quote that have the value."""
    if "\n" not in text[start:end]:
        return [(start, end)]
    found, at = [], start
    for line in text[start:end].split("\n"):
        if _states(line, value):
            found.append((at, at + len(line)))
        at += len(line) + 1
    return found


def _states(line: str, value: Any) -> bool:
    if isinstance(value, str):
        if plain(value) in plain(line):
            return True
        made = value_of(value)
        return made is not None and any(day.says(made[0]) for one in dates(line) for day in one.days)
    wanted = decimal(value)
    return wanted is not None and any(wanted in number.readings for number in numbers(line))


def _line_relates(leaf: Leaf, value: Any, source: Source, start: int, end: int) -> bool:
    names = name_parts(leaf.path)
    quote = source.text[start:end]
    last = names[-1] if names else ""
    if (last in _TITLES or any(name in _CONTACTS for name in names)) and _is_of_agency(value, source, start):
        return False
    if last in _TITLES and isinstance(value, str):
        if plain(value) in _SECTIONS:
            return False
        known = _is_in(value, source.titles)
        if last in _HEADLINES and _is_main_heading(value, source):
            return True
        if known is not None:
            return known or _is_introduced(value, quote) or _is_labelled(leaf, value, source, start, end)
    if last in _PEOPLE and isinstance(value, str):
        return _is_person(value) and (
            _is_known_person(value, source.people) or _is_credited(leaf, value, source, start, end)
        )
    if last in _BRANDS and isinstance(value, str) and _begins_title(value, source.titles):
        return True
    if leaf.type == "date":
        return _is_of_date(names, leaf, value, source, start, end)
    if any(name in _MONEY for name in names) or last == "currency":
        is_code = last == "currency" and isinstance(value, str)
        return _is_price(leaf, value, quote, source, start, end) and (
            is_code or not _is_of_other_item(leaf, quote, source)
        )
    if any(name in _CONTACTS for name in names):
        return _has_form(last, value) and not source.is_foreign(start, end, by_heading=True)
    if leaf.type in ("boolean", "enum"):
        return True
    return _is_labelled(leaf, value, source, start, end)


def is_people(leaf: Leaf) -> bool:
    return leaf.type == "string" and name_parts(leaf.path)[-1:] != [] and name_parts(leaf.path)[-1] in _PEOPLE


def is_money(leaf: Leaf) -> bool:
    return any(name in _MONEY for name in name_parts(leaf.path))


def is_only_money(leaf: Leaf) -> bool:
    """An amount may be a percentage, a price may not."""
    return is_money(leaf) and "amount" not in name_parts(leaf.path)


def is_of_price(text: str) -> bool:
    """Return whether an amount in this text may be a price, and not the cost of its delivery or a discount."""
    return _NOT_PRICE.search(text) is None


def _has_form(name: str, value: Any) -> bool:
    """A phone number has digits and few letters, an e-mail address an `@`."""
    if not isinstance(value, str):
        return True
    if name in _PHONES:
        letters = sum(char.isalpha() for char in value)
        return sum(char.isdigit() for char in value) >= _MIN_DIGITS and letters <= _MAX_LETTERS
    return "@" in value or name not in _MAILS


def _is_of_agency(value: Any, source: Source, start: int) -> bool:
    """Whether the line says before the value who made the website, hosts it or sells its tickets."""
    line = source.text.rfind("\n", 0, start) + 1
    end = source.text.find("\n", start)
    said = source.text[line : end if end >= 0 else len(source.text)][:_MAX_LINE]
    at = said.find(str(value))
    return _AGENCY.search(said[:at] if at >= 0 else said) is not None


def is_named_by(leaf: Leaf, value: Any, quote: str) -> bool:
    """Return whether a quote names the field beside the value, as far as the words of both tell."""
    words = words_of(leaf)
    return has_word(quote.replace(str(value), " ") if isinstance(value, str) else quote, words) if words else False


def can_name(leaf: Leaf, text: str) -> bool:
    """Return whether a quote from this text, or a line that it labels, could relate to the field."""
    names = name_parts(leaf.path)
    if not names or names[-1] in _TITLES or leaf.type in ("boolean", "enum"):
        return True
    if leaf.type == "date":
        return any(char.isdigit() for char in text) or has_word(text, words_of(leaf))
    if names[-1] in _PEOPLE and any(0 < len(line) <= _BYLINE for line in text.split("\n")):
        return True
    if any(name in _MONEY for name in names) or names[-1] == "currency":
        return has_money(text)
    if any(name in _CONTACTS for name in names) and _CONTACT_FORM.search(text) is not None:
        return True
    words = words_of(leaf)
    return not words or has_word(text, words)


def name_parts(path: str) -> list[str]:
    """Return the words of a path; `year` and the like only if there is nothing more specific."""
    parts = [_CAMEL.sub("_", key) for key in keys(path) if key != "*"]
    found = [word for part in parts for word in plain(part).replace("-", "_").split("_") if word]
    return [word for word in found if word not in _LOOSE] or found


def _is_introduced(value: str, quote: str) -> bool:
    """`The Quiet Goose was founded by two sisters`, `We are Alder Works`: a sentence about what it names."""
    before, found, after = quote.partition(value)
    if not found:
        return False
    return bool(_TELLS.match(after) and not before.strip()) or _INTRODUCES.search(before) is not None


def _is_person(value: str) -> bool:
    words = value.split()
    if not 0 < len(words) <= _MAX_NAME_WORDS or any(char.isdigit() for char in value):
        return False
    small = sum(word[0].islower() and word.lower() not in _PARTICLES for word in words)
    ends = value[-1:] in ".!?。" and not (value[-1] == "." and len(words[-1]) <= _MAX_INITIAL)
    return not ends and (len(words) < _MIN_PROSE or small <= len(words) // 2)


def _begins_title(value: str, titles: tuple[str, ...]) -> bool:
    """The name of a product often begins with its brand."""
    wanted = plain(value)
    return any(len(plain(one)) > len(wanted) and plain(one).startswith(f"{wanted} ") for one in titles)


def _is_credited(leaf: Leaf, value: str, source: Source, start: int, end: int) -> bool:
    """A single word below a label or a heading may be an item of a menu."""
    if " " in value.strip() or _UNSPACED.search(value):
        return _is_labelled(leaf, value, source, start, end)
    return any(has_word(context, words_of(leaf)) for context in _contexts(leaf, value, source, start, end))


def _is_main_heading(value: str, source: Source) -> bool:
    span = source.main_heading
    return span is not None and _is_most_of(plain(value), plain(source.text[slice(*span)]))


def _is_near_main_heading(source: Source, start: int, before: int, after: int) -> bool:
    """Return whether a place is near the main heading: lists of other items have dates and prices too."""
    span = source.main_heading
    return span is None or span[0] - before <= start <= span[1] + after


def _is_known_person(value: str, known: tuple[str, ...]) -> bool:
    """A single word is a person only if it is the whole name."""
    wanted = plain(value)
    return any(plain(one) == wanted for one in known) or (" " in wanted and bool(_is_in(value, known)))


def _is_price(leaf: Leaf, value: Any, quote: str, source: Source, start: int, end: int) -> bool:
    if isinstance(value, str) and (len(value) > _MAX_MONEY or any(char.isdigit() for char in value)):
        return False
    if isinstance(value, str):
        return has_money(quote) and source.states(leaf.path, value) is not False  # the currency
    if _NOT_PRICE.search(quote) is not None:
        return False
    if not has_money(quote) and not any(at <= start and end <= last for at, last in source.prices):
        return False
    if has_word(quote, FIELD_PRICE):
        return True
    # The page states another price, or it is the price of a related item.
    if source.states(leaf.path, value) is False:
        return False
    return _is_near_main_heading(source, start, _BEFORE_HEADING, _AFTER_HEADING_PRICE)


def _is_of_other_item(leaf: Leaf, quote: str, source: Source) -> bool:
    """`Scarf €35` on the page of a hat: a line that is the name of another thing and its price."""
    if not source.titles or has_word(quote, words_of(leaf)):
        return False
    named = [word for word in _WORD.findall(quote) if word.isalpha() and len(word) > 2 and not _is_code(word)]
    if not 0 < len(named) <= _MAX_NAMED or not named[0][0].isupper():
        return False
    words = {_composed(word) for word in named}
    if words & _BESIDE_PRICE:
        return False
    known = {_composed(word) for title in source.titles for word in _WORD.findall(title)}
    return not words & known


def _is_code(word: str) -> bool:
    return len(word) == 3 and word.isupper()


def _is_of_date(names: list[str], leaf: Leaf, value: Any, source: Source, start: int, end: int) -> bool:
    """A date with a label, a line that is nothing but a date, or a date next to a byline."""
    quote = source.text[start:end]
    if not {"modified", "updated"} & set(names) and _UPDATED.search(quote) and len(list(dates(quote))) == 1:
        return False
    if _STARTS & set(names) and _DEADLINE.search(quote):
        return False
    beside = quote
    for stated in reversed(list(dates(quote))):
        beside = beside[: stated.start] + " " + beside[stated.end :]
    words = [word for word in _WORD.findall(beside) if not word.isdigit()]
    if _is_labelled(leaf, value, source, start, end):
        return True
    if source.states(leaf.path, value) is False:
        return False
    if len(words) <= _MAX_BESIDE_DATE and _is_near_main_heading(source, start, _BEFORE_HEADING, _AFTER_HEADING):
        return True
    return any(plain(one) and plain(one) in plain(quote) for one in source.people)


def _is_in(value: str, known: tuple[str, ...]) -> bool | None:
    """Return whether a known text contains the value, or most of it; None if nothing is known."""
    if not known:
        return None
    wanted = plain(value)
    return any(_is_most_of(wanted, plain(one)) for one in known)


def _is_most_of(wanted: str, title: str) -> bool:
    """Return whether two texts are the same except for a part: a title and its heading, a name and its description."""
    if len(title) > _MIN_TITLE and title in wanted:
        return len(title) >= _LEAST_SHARE * len(wanted)
    at = title.find(wanted) if wanted else -1
    if at < 0 or not is_whole(title, at, at + len(wanted)):
        return False
    parts = [part for part in _TITLE_PARTS.split(title) if wanted in part] or [title]
    if any(len(wanted) >= _LEAST_SHARE * len(part) for part in parts):
        return True
    # `Official site of the town of Brevant`
    return len(wanted) > _MIN_TITLE and any(part.endswith(f" {wanted}") for part in parts)


def _is_labelled(leaf: Leaf, value: Any, source: Source, start: int, end: int) -> bool:
    words = words_of(leaf)
    if not words:
        return True
    if any(has_word(context, words) for context in _contexts(leaf, value, source, start, end)):
        return True
    if _has_own_label(source, start, end):
        return False
    return any(_is_label(line, words) for line in _above(source, source.text.rfind("\n", 0, start) + 1))


def _has_own_label(source: Source, start: int, end: int) -> bool:
    """Return whether the line of the quote has a label: then a line above does not label it."""
    line = source.text.rfind("\n", 0, start) + 1
    return _LABEL.match(source.text[line:end]) is not None or bool(source.layout.labels_at(start, end))


def _is_label(line: str, words: frozenset[str]) -> bool:
    """Return whether a line is nothing but a label."""
    tokens = [token for token in _WORD.findall(_composed(line)) if token not in _SMALL]
    others = [token for token in tokens if not has_word(token, words)]
    return bool(tokens) and len(others) <= 1 and len(others) < len(tokens)


@lru_cache(maxsize=512)
def words_of(leaf: Leaf) -> frozenset[str]:
    """Return the beginnings of words that relate to a field."""
    named = [name for name in name_parts(leaf.path) if name not in _EMPTY]
    found = {one for name in named for one in _known_words(name)}
    found |= {_stem(name) for name in named}
    return frozenset(found | {_composed(one) for one in leaf.hints})


def _known_words(name: str) -> tuple[str, ...]:
    return FIELD_WORDS.get(name) or FIELD_WORDS.get(name.rstrip("s")) or FIELD_WORDS.get(f"{name}s") or ()


def _stem(name: str) -> str:
    """`employees` -> `employe`; enough to find its other forms."""
    return name[:-2] if len(name) > 6 else name.rstrip("s") if len(name) > 3 else name


def _contexts(leaf: Leaf, value: Any, source: Source, start: int, end: int) -> list[str]:
    """Return the texts that can name the value: the quote without it, the line before it, the labels of its cell."""
    text = source.text
    quote = text[start:end]
    if isinstance(value, str) and not leaf.long and not _is_statement(leaf, value):
        quote = quote.replace(value, " ")
    line = text.rfind("\n", 0, start) + 1
    found = [quote, text[max(line, start - 200) : start]]
    return found + [label.text for label in source.layout.labels_at(start, end)]


def _is_statement(leaf: Leaf, value: str) -> bool:
    """An item of a list of statements names its field itself."""
    is_named = bool({*name_parts(leaf.path)} & (_PEOPLE | _TITLES))
    return leaf.many and len(value.split()) >= _SENTENCE_WORDS and not is_named


def _above(source: Source, line: int) -> list[str]:
    """Return the short lines right above, and the nearest heading."""
    text, found = source.text, []
    at = line - 1
    for number in range(_MAX_UP):
        if at <= 0:
            break
        begin = text.rfind("\n", 0, at) + 1
        one = text[begin:at].strip()
        is_heading = begin in source.headings
        if (
            one
            and len(one) <= _SHORT_LINE
            and (is_heading or (number < _LABELS_UP and not one.endswith((".", "!", "?"))))
        ):
            found.append(one)
        if is_heading or (not source.headings and number >= _MAX_UP // 4):
            break
        at = begin - 1
    return found


def has_word(text: str, words: frozenset[str]) -> bool:
    folded = _composed(text[:2_000])
    if any(word in folded for word in words if _UNSPACED.search(word) or not word[0].isalnum()):
        return True
    for token in _WORD.findall(folded):
        if token in words:
            return True
        if any(token[:size] in words for size in range(_MIN_PREFIX, len(token))):
            return True
    return False


def names(leaf: Leaf, text: str) -> bool:
    """Return whether a label has a word of the field."""
    return has_word(text, words_of(leaf))
