"""Words around the authors and dates of articles, from `article_words.toml`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

WORDS: dict[str, frozenset[str]] = {
    name: frozenset(one.strip() for one in text.replace("\n", "").split("|"))
    for name, text in tomllib.loads((Path(__file__).parent / "article_words.toml").read_text("utf-8")).items()
}


def any_of(name: str) -> str:
    """Return a pattern for one of the words, longest first."""
    return f"(?:{'|'.join(map(re.escape, sorted(WORDS[name], key=lambda one: (-len(one), one))))})"


def marked(name: str) -> re.Pattern[str]:
    """Return a pattern for one of the words as a part of a class or another mark: `entry-date` in `post entry-date`."""
    return re.compile(rf"(?:^|[\s_\-]){any_of(name)}(?:$|[\s_\-])", re.IGNORECASE)
