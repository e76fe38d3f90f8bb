"""The labels of the Encoding Standard, and the Python codecs for them. No I/O."""

from __future__ import annotations

from webencodings.labels import LABELS

#: the encoding of a page that neither declares nor shows one
FALLBACK = "windows-1252"

#: encodings of the standard whose codec has another name in Python, or is a superset of theirs
_CODECS = {
    "big5": "big5hkscs",
    "euc-jp": "euc_jp",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "iso-2022-jp": "iso2022_jp",
    "iso-8859-8-i": "iso-8859-8",
    "macintosh": "mac-roman",
    "shift_jis": "cp932",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
}
_ENCODINGS = {label: _CODECS.get(name, name) for label, name in LABELS.items()}
SINGLE_BYTE = frozenset(
    name for name in _ENCODINGS.values() if name.startswith(("iso-8859", "windows", "koi8", "mac", "cp874"))
)


def encoding_for(label: str) -> str | None:
    """The codec for a label of the Encoding Standard; None if there is no such label."""
    return _ENCODINGS.get(label.strip("\t\n\f\r ").lower())
