"""Write src/curtsy/grounding/cldr.toml: words and forms of 72 languages from the Unicode CLDR, by way of Babel.

    python tools/cldr_table.py

Babel is a tool of developers: the package reads only the table.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from babel import Locale

LANGUAGES = [
    "af",
    "ar",
    "az",
    "be",
    "bg",
    "bn",
    "bs",
    "ca",
    "cs",
    "cy",
    "da",
    "de",
    "el",
    "en",
    "es",
    "et",
    "eu",
    "fa",
    "fi",
    "fil",
    "fr",
    "ga",
    "gl",
    "gu",
    "he",
    "hi",
    "hr",
    "hu",
    "hy",
    "id",
    "is",
    "it",
    "ja",
    "ka",
    "kk",
    "km",
    "kn",
    "ko",
    "lo",
    "lt",
    "lv",
    "mk",
    "ml",
    "mn",
    "mr",
    "ms",
    "mt",
    "my",
    "nb",
    "ne",
    "nl",
    "pa",
    "pl",
    "pt",
    "ro",
    "ru",
    "si",
    "sk",
    "sl",
    "sq",
    "sr",
    "sv",
    "sw",
    "ta",
    "te",
    "th",
    "tr",
    "uk",
    "ur",
    "uz",
    "vi",
    "zh",
]
REGIONS = ("en_US", "en_GB", "en_CA", "en_AU", "en_IN", "en_IE", "en_NZ", "en_ZA", "fr_CA", "es_MX", "es_US", "pt_PT")
#: common words or units in other languages
AMBIGUOUS = frozenset(("bin", "ebr", "fra", "ion", "maw", "medi", "billions", "bln", "mil", "min", "ming"))
TARGET = Path(__file__).parent.parent / "src/curtsy/grounding/cldr.toml"
HEAD = """\
# Made by tools/cldr_table.py from the Unicode CLDR (Unicode License v3, https://www.unicode.org/license.txt).
# months: names and short names of the twelve months, in all languages. scales: words -> decimal places.
# orders: language -> order of day, month and year in numeric dates.
"""


def main() -> None:
    locales = [Locale.parse(one) for one in LANGUAGES]
    months = [sorted(_months(locales, number)) for number in range(1, 13)]
    lines = [HEAD, "months = ["]
    lines += [f"  {_listed(names)}," for names in months]
    lines += ["]", "", "[scales]"]
    lines += [f"{_quoted(word)} = {places}" for word, places in sorted(_scales(locales).items())]
    lines += ["", "[orders]"]
    lines += [f'{_quoted(one.replace("_", "-").lower())} = "{_order(one)}"' for one in (*LANGUAGES, *REGIONS)]
    TARGET.write_text("\n".join(lines) + "\n", "utf-8")


def _months(locales: list[Locale], number: int) -> set[str]:
    found = {
        one.months[context][width][number].lower().rstrip(".").strip("\u200e\u200f ")
        for one in locales
        for context in ("format", "stand-alone")
        for width in ("wide", "abbreviated")
    }
    return {
        unicodedata.normalize("NFC", name)
        for name in found
        if not any(char.isdigit() for char in name) and len(name) > 1 and name not in AMBIGUOUS
    }


def _scales(locales: list[Locale]) -> dict[str, int]:
    """Words that no two languages use for different scales, of more than one letter."""
    found: dict[str, set[int]] = {}
    for one in locales:
        for width in ("short", "long"):
            for forms in one.compact_decimal_formats.get(width, {}).values():
                for size, form in forms.items():
                    _note(found, size, str(getattr(form, "pattern", form)))
    clear = {word: next(iter(places)) for word, places in found.items() if len(places) == 1}
    return {word: places for word, places in clear.items() if word not in AMBIGUOUS}


def _note(found: dict[str, set[int]], size: str, pattern: str) -> None:
    zeros = pattern.count("0")
    word = re.sub(r"[0'\u00a0\u200e\u200f\s]", " ", pattern).strip().rstrip(".").lower()
    if zeros and word and " " not in word and len(word) > 2:
        found.setdefault(word, set()).add(len(size) - zeros)


def _order(name: str) -> str:
    pattern = Locale.parse(name).date_formats["short"].pattern
    return "".join(dict.fromkeys(char.lower() for char in pattern if char in "dMy"))


def _listed(names: list[str]) -> str:
    return "[" + ", ".join(_quoted(name) for name in names) + "]"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


if __name__ == "__main__":
    main()
