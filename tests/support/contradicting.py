"""A site whose pages agree about the name and the founding year, and contradict each other about other values."""

from __future__ import annotations

import json
from typing import Any

HOST = "alder.test"
NAME = "Alder Works"
HOME_PHONE, ABOUT_PHONE = "+47 55 12 34 56", "+47 55 65 43 21"
_TEXT = (
    "We make chairs and tables from alder wood in our workshop by the fjord, and we repair old furniture. "
    "Our carpenters work with hand tools, and each chair takes three days from the log to the last coat of oil. "
)


def page(title: str, *, words: int = 120, **data: Any) -> bytes:
    """A page with the structured data of the organization."""
    text = " ".join((_TEXT.split() * (words // len(_TEXT.split()) + 1))[:words])
    stated = {"@context": "https://schema.org", "@type": "Organization", "name": NAME, "url": f"https://{HOST}/"}
    script = f'<script type="application/ld+json">{json.dumps(stated | data)}</script>'
    return f"<html lang=en><title>{title}</title>{script}<h1>{NAME}</h1><p>{text}</p></html>".encode()


def pages(*, words: int = 120, home: dict[str, Any] | None = None, about: dict[str, Any] | None = None) -> Any:
    """(URL, body) of two pages that state different telephone numbers."""
    shared = {"foundingDate": "1954"}
    home = shared | {"telephone": HOME_PHONE} | (home or {})
    about = shared | {"telephone": ABOUT_PHONE} | (about or {})
    return [
        (f"https://{HOST}/", page(NAME, words=words, **home)),
        (f"https://{HOST}/about", page(f"About us | {NAME}", words=words, **about)),
    ]
