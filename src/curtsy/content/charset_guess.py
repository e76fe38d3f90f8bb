"""The encoding of a body that declares none: UTF-8 if it is valid UTF-8, otherwise a guess from its bytes. No I/O.

Bounded: the UTF-8 check reads the body once, and the detector reads `SAMPLE_BYTES`. ASCII needs neither.
"""

from __future__ import annotations

import codecs
import re

from chardetng_py import EncodingDetector

from curtsy.content.encoding_labels import FALLBACK, encoding_for

#: what the detector reads, from the first byte beyond ASCII on
SAMPLE_BYTES = 8 * 1024
#: text before that byte that it reads too, because ASCII letters next to it are evidence
_LEAD_BYTES = 512
#: with fewer bytes beyond ASCII, the Latin encodings cannot be told apart
_MIN_LATIN_BYTES = 8
_LATIN = frozenset(
    ("windows-1250", "windows-1254", "windows-1257", "windows-1258", "iso-8859-2", "iso-8859-4", "iso-8859-13")
)
#: names of the binding that are not labels of the standard
_NAMES = {"cp874": "windows-874"}
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
#: the escape sequence that begins Japanese text in ISO-2022-JP, which is all ASCII
_JAPANESE = b"\x1b$"
_ENDS_WITH_COUNTRY = re.compile(r"\.([a-z]{2})\Z")


def guess(body: bytes, url: str | None = None) -> str:
    """The encoding of a body without a declaration. Its URL helps: the country of a host hints at the language."""
    if body.isascii():
        at = body.find(_JAPANESE)
        return FALLBACK if at < 0 else _detect(body, at, url)
    found = _NOT_ASCII.search(body)
    at = 0 if found is None else found.start()
    return "utf-8" if _is_utf8(body, at) else _detect(body, at, url)


def _is_utf8(body: bytes, at: int) -> bool:
    """Valid UTF-8, cut at its end or not; or a few wrong bytes in much correct text.

    Text in another encoding has at most one correct sequence for two wrong ones.
    """
    try:
        body.decode()
    except UnicodeDecodeError:
        text, _ = codecs.utf_8_decode(body[at : at + SAMPLE_BYTES], "replace", False)
        wrong = text.count("\ufffd")
        return len(text) - len(text.encode("ascii", "ignore")) > 11 * wrong
    return True


def _detect(body: bytes, at: int, url: str | None) -> str:
    sample = body[max(0, at - _LEAD_BYTES) : at + SAMPLE_BYTES]
    detector = EncodingDetector()
    detector.feed(sample, last=False)
    name = detector.guess(tld=_country(url), allow_utf8=False)
    charset = encoding_for(_NAMES.get(name, name)) or FALLBACK
    if charset in _LATIN and len(_NOT_ASCII.findall(sample)) < _MIN_LATIN_BYTES:
        return FALLBACK
    return charset


def _country(url: str | None) -> bytes | None:
    if url is None:
        return None
    host = url.partition("//")[2].partition("/")[0].rpartition("@")[2].partition(":")[0].lower()
    found = _ENDS_WITH_COUNTRY.search(host)
    return None if found is None else found[1].encode()
