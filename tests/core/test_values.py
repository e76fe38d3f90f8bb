"""Values of which every page makes one: frozen for the type checker, cheap for the interpreter."""

from __future__ import annotations

from dataclasses import field, replace

import pytest

from curtsy.core.model import Entry, NewUrl, hot_value


def test_values_are_equal_by_their_fields_and_changed_by_replace() -> None:
    entry = Entry(url="https://a.example/")
    deeper = replace(entry, depth=1)
    assert entry == Entry(url="https://a.example/") != deeper
    assert len({entry, Entry(url="https://a.example/"), deeper}) == 2


def test_values_show_their_fields_unless_they_are_secret() -> None:
    @hot_value(kw_only=False)
    class Login:
        user: str
        password: str = field(repr=False)

    assert repr(Login("me", "secret")).endswith("Login(user='me')")


def test_new_urls_are_equal_by_identity() -> None:
    one, two = (NewUrl(crawl=1, fp=b"f", url="https://a.example/", host="a.example") for _ in range(2))
    assert one != two
    assert len({one, one, two}) == 2


def test_values_take_no_further_field_and_none_by_position() -> None:
    with pytest.raises(AttributeError):
        Entry(url="https://a.example/").other = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Entry("https://a.example/")  # type: ignore[call-arg]
