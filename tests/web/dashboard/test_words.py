"""Numbers, times, seeds and charts, without a server."""

from __future__ import annotations

import pytest

from curtsy.core.model import Request
from curtsy.core.settings_loading import load
from curtsy.web.dashboard import charts, review, seeds, words
from curtsy.web.dashboard.explain import frontier_rows

SETTINGS = load()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 ms"),
        (0.25, "250 ms"),
        (1, "1 s"),
        (2.5, "2.5 s"),
        (59, "59 s"),
        (61, "1 min 1 s"),
        (600, "10 min"),
        (2400, "40 min"),
        (3720, "1 h 2 min"),
        (90_000, "1 d 1 h"),
        (864_000, "10 d"),
        (None, "–"),
    ],
)
def test_a_duration_is_shown_in_two_units(seconds: float | None, said: str) -> None:
    assert words.span(seconds) == said


def test_problems_and_the_frontier_are_explained_to_people() -> None:
    said = "There is no page with this id. GET /v1/crawls/{id}/pages lists them."
    assert words.for_people(said) == "There is no page with this id."
    assert words.for_people("Not now.") == "Not now."
    assert len(words.for_people("x" * 1_000_000 + " GET /v1/x.")) == 1_000
    seen = {"at": "2026-01-31T12:00:00Z", "queued_behind": 1, "loaded": True, "host_delay_s": 4.0, "starved": False}
    assert frontier_rows(seen) == [
        ("Position in its queue", "behind 1 other"),
        ("Its queue", "in the frontier"),
        ("Delay of the host", "4 s"),
        ("Frontier queried", "2026-01-31 12:00:00 UTC"),
    ]
    assert frontier_rows({"queued_behind": 0, "loaded": False}) == [
        ("Position in its queue", "next"),
        ("Its queue", "in the store, until the frontier has room"),
    ]
    assert frontier_rows({"at": "2026-01-31T12:00:00Z"}) == []
    assert frontier_rows(None) == []


def test_what_hides_or_turns_text_around_is_shown_as_a_mark() -> None:
    assert words.foreign("a\u202eb\u2066c\u200bd\x07e") == "a\ufffdb\ufffdc\ufffdd\ufffde"
    assert words.foreign("x" * 500, 10) == "x" * 9 + "…"
    text = "one\r\ntwo\u202e\rthree"
    assert len(words.inert(text)) == len(text)  # places in the text stay where they are
    assert words.inert(text).splitlines() == ["one ", "two\ufffd", "three"]


def test_seeds_are_told_apart_line_by_line() -> None:
    lines = [
        "https://a.test/",
        "",
        "# a remark",
        "a.test",
        "b.test/x",
        "ftp://c.test/",
        "http://127.0.0.1/",
        "https://A.test",
    ]
    found = seeds.check(lines, SETTINGS)
    assert found.urls == ["https://a.test/", "https://b.test/x"]
    assert [(line, seed) for line, seed, _ in found.refused] == [(6, "ftp://c.test/"), (7, "http://127.0.0.1/")]
    assert [line for line, _ in found.twice] == [4, 8]
    assert dict(found.hosts) == {"a.test": 1, "b.test": 1}


@pytest.mark.parametrize(
    ("sites", "delay_s", "most", "said"),
    [
        (312, 1.0, 748_800, "About 1 request per second to each of 312 sites: 40 min for 748,800 pages"),
        (1, 1.0, 60, "About 1 request per second to this site: 1 min for 60 pages"),
        (2, 0.25, None, "About 4 requests per second to each of 2 sites: 1 s for the seeds alone"),
        (2, 10.0, 100, "About 1 request every 10 s to each of 2 sites: 8 min 20 s for 100 pages"),
        (1, 0.0, None, "As fast as the sites answer, 1 request at a time to this site"),
        (0, 1.0, None, ""),
    ],
)
def test_politeness_is_reported_in_plain_words(sites: int, delay_s: float, most: int | None, said: str) -> None:
    found = seeds.check([f"https://h{n}.test/" for n in range(sites)], SETTINGS)
    assert seeds.pace(found, delay_s, 1, most).startswith(said)


def request(start_ms: int, end_ms: int, status: int = 200, delay_ms: int = 1000, **more: object) -> Request:
    fields = {"fence": start_ms, "crawl": 1, "host": "a.test", "url": "https://a.test/", "kind": "page"} | more
    return Request(start_ms=start_ms, end_ms=end_ms, status=status, delay_ms=delay_ms, **fields)  # type: ignore[arg-type]


def test_a_timeline_draws_each_request_behind_its_delay() -> None:
    found = charts.timeline([request(0, 100), request(1000, 1500), request(2000, 2000)])
    assert found is not None
    assert [row.x for row in found.rows] == [0, 500, 1000]
    assert [(row.delay_x, row.delay_width) for row in found.rows] == [(0, 0), (0, 500), (500, 500)]
    assert not any(row.early for row in found.rows)
    assert "every one waited" in found.says


def test_a_request_that_began_too_early_is_reported() -> None:
    found = charts.timeline([request(0, 100), request(900, 950)])
    assert found is not None
    assert [row.early for row in found.rows] == [False, True]
    assert "1 started before" in found.says
    # The delay after what we broke off counts from its end.
    broken = charts.timeline([request(0, 500, 0, fault="timeout"), request(1400, 1450)])
    assert broken is not None
    assert broken.rows[1].early


def test_charts_have_tops_that_can_be_read_and_say_what_they_show() -> None:
    assert [charts.nice(value) for value in (0, 0.25, 1, 1.1, 3, 42, 999)] == pytest.approx(
        [1, 0.3, 1, 1.5, 3, 50, 1000]
    )
    chart = charts.rates([60, 0, 120], [0, 60_000, 120_000, 180_000])
    assert chart.top == "2/s"
    assert [(bar.y, bar.height) for bar in chart.bars] == [(50, 50), (0, 100)]
    assert chart.says == "180 pages in 3 min, at most 2.00 per second"
    assert charts.rates([0, 0], [0, 1000, 2000]).empty
    stacked = charts.answers(
        [request(0, 1), request(1, 2, 404), request(2, 3, 500), request(3, 4, 0, fault="timeout")], 2
    )
    assert stacked is not None
    assert {name: n for _, name, n in stacked.legend} == {"2xx": 1, "4xx": 1, "5xx": 1, "no response": 1}
    assert sum(bar.height for bar in stacked.bars) == 200  # two full columns


@pytest.mark.parametrize(
    ("text", "value"),
    [("", None), ("12", 12), ('["a"]', ["a"]), ("true", True), ("some words", "some words"), ('"12"', '"12"'),
     ("NaN", "NaN"), ("-Infinity", "-Infinity"), ("[NaN]", "[NaN]"), ("9" * 5000, "9" * 5000)],
)  # fmt: skip
def test_a_correction_is_read_as_json_has_it_or_as_words(text: str, value: object) -> None:
    assert review._read(text) == value
