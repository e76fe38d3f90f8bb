"""The name of a run: the spider's name and its arguments. Processes with the same name share their requests.

Scrapy keeps the arguments of a spider nowhere. The add-on is imported before any spider is created, so it can note
what each one is given.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Spider

#: longer names end with a digest
_LONGEST = 120
_given: WeakKeyDictionary[Spider, dict[str, Any]] = WeakKeyDictionary()
_noting = False


def note_arguments() -> None:
    """From now on, note the arguments that spiders are created with."""
    global _noting
    if _noting:
        return
    _noting = True
    create = Spider.from_crawler.__func__  # type: ignore[attr-defined]

    @functools.wraps(create)
    def from_crawler(cls: type[Spider], crawler: Any, *args: Any, **kwargs: Any) -> Spider:
        spider: Spider = create(cls, crawler, *args, **kwargs)
        _given[spider] = {**{str(n): value for n, value in enumerate(args)}, **kwargs}
        return spider

    Spider.from_crawler = classmethod(from_crawler)  # type: ignore[assignment, method-assign]


def name_of(spider: Spider, words: Sequence[str] = sys.argv) -> str:
    """`quotes`, or with arguments `quotes category=books,page=2`."""
    given = _given.get(spider)
    arguments = _of_command(words) if given is None else given
    if not arguments:
        return str(spider.name)
    text = ",".join(f"{name}={_text(arguments[name])}" for name in sorted(arguments))
    full = f"{spider.name} {text}"
    if len(full) <= _LONGEST and full.isprintable():
        return full
    return f"{full[:80]!a} {hashlib.sha256(full.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=repr)


def _of_command(words: Sequence[str]) -> dict[str, str]:
    """The arguments `-a NAME=VALUE` of this command: without the add-on, there is no other source for them."""
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        given = words[at + 1] if word == "-a" and at + 1 < len(words) else word[2:] if word.startswith("-a") else ""
        name, equals, value = given.partition("=")
        if equals:
            found[name] = value
    return found
