"""Which rule keeps a URL out of a crawl, and which option changes it."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.control.explain_text import meaning_of, out_of_scope
from curtsy.core.model import Crawl
from curtsy.rules.urls import Scope


@pytest.mark.parametrize(
    ("options", "url", "depth", "says"),
    [
        ({"scope": "host"}, "https://b.test/", 0, "--scope domain, --scope any, or another seed"),
        ({"scope": "domain", "members": {"a.test"}}, "https://b.test/", 0, "only these domains: a.test. --scope any"),
        ({"members": {f"h{i}.test" for i in range(5)}}, "https://b.test/", 0, "h0.test, h1.test, h2.test and 2 more"),
        ({"exclude": ("/x", "/y")}, "https://a.test/y", 0, "the pattern '/y' of --exclude matches it"),
        ({"include": ("/x",)}, "https://a.test/y", 0, "no pattern of --include matches it: '/x'"),
        ({"max_depth": 2}, "https://a.test/y", 3, "more than 2 links away from a seed (--max-depth)"),
        ({}, "https://a.test/" + "y" * 3000, 0, "longer than max_url_length"),
        ({}, "https://a.test/" + "/".join(map(str, range(40))), 0, "more parts than max_path_segments"),
        ({}, "https://a.test/x/x/x/x/x", 0, "repeats parts more often than max_repeated_segments"),
    ],
)
def test_every_rule_has_its_sentence(options: dict[str, Any], url: str, depth: int, says: str) -> None:
    given = {"members": {"a.test"}} | options
    crawl = Crawl(id="c", request_id="r", **(given | {"members": frozenset(given["members"])}))
    reason = Scope.of(crawl).admits(url, depth)
    assert reason is not None
    assert says in out_of_scope(crawl, url, reason)


def test_a_failure_of_dns_names_the_host() -> None:
    assert str(meaning_of("no_such_host", "exampel.test")).startswith("exampel.test: the host name does not exist")
    assert "SSL_CERT_FILE" in str(meaning_of("tls_failed", "a.test"))
