"""The judge over the access log: what counts as impolite, and by how much."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from curtsy.tinyweb import politeness_check as judging
from curtsy.tinyweb.accesslog import AccessLog, Line, read
from curtsy.tinyweb.politeness_check import judge

ORG = "org-0001.tinyweb.test"


def asked(start_ms: float, end_ms: float, path: str = "/", host: str = ORG, hold_ms: float = 0) -> Line:
    start, end, hold = (int(ms * 1000) for ms in (start_ms, end_ms, hold_ms))
    return Line(
        host=host, method="GET", path=path, status=200, start_us=start, end_us=end, connection=1, bytes=10,
        hold_until_us=hold,
    )  # fmt: skip


def test_a_polite_log_is_clean() -> None:
    verdict = judge([asked(0, 20), asked(500, 700), asked(1000, 1010)], delay_s=0.5)
    assert verdict.ok
    assert (verdict.requests, len(verdict.hosts)) == (3, 1)


def test_requests_that_overlap_are_counted_with_their_extent() -> None:
    verdict = judge([asked(0, 900), asked(500, 600), asked(1000, 1010)], delay_s=0.5)
    assert not verdict.ok
    assert (verdict.overlaps, verdict.largest_overlap_ms) == (1, 400)


def test_an_overlap_with_any_earlier_request_counts() -> None:
    verdict = judge([asked(0, 2000), asked(500, 510), asked(1000, 1010)], delay_s=0)
    assert verdict.overlaps == 2


def test_starts_closer_than_the_delay_are_shortfalls() -> None:
    verdict = judge([asked(0, 1), asked(400, 401), asked(900, 901)], delay_s=0.5)
    assert (verdict.shortfalls, verdict.largest_shortfall_ms) == (1, 100)


def test_what_is_within_the_tolerance_is_measured_but_not_counted() -> None:
    verdict = judge([asked(0, 470), asked(460, 461)], delay_s=0.5)
    assert verdict.ok
    assert (verdict.largest_overlap_ms, verdict.largest_shortfall_ms) == (10, 40)
    assert not judge([asked(0, 470), asked(460, 461)], delay_s=0.5, tolerance_ms=5).ok


def test_hosts_are_judged_apart() -> None:
    assert judge([asked(0, 300), asked(100, 200, host="org-0002.tinyweb.test")], delay_s=0.5).ok


def test_the_order_of_the_log_does_not_matter() -> None:
    assert judge([asked(1000, 1010), asked(0, 20), asked(500, 510)], delay_s=0.5).ok


def test_crawl_delay_of_robots_txt_counts_where_it_is_longer() -> None:
    host = "robots-crawl-delay.tinyweb.test"
    assert judge([asked(0, 1, host=host), asked(500, 501, host=host)], delay_s=0.5).shortfalls == 1
    assert judge([asked(0, 1, host=host), asked(2000, 2001, host=host)], delay_s=0.5).ok
    assert judge([asked(0, 1, host=host), asked(2000, 2001, host=host)], delay_s=3).shortfalls == 1


def test_forbidden_paths_are_robots_violations() -> None:
    verdict = judge([asked(0, 1, "/internal/drafts"), asked(500, 501, "/robots.txt")], delay_s=0.5)
    assert verdict.robots_violations == 1
    assert verdict.hosts[0].robots_violations == ("GET /internal/drafts",)


def test_requests_to_an_address_are_unwanted() -> None:
    assert judge([asked(0, 1, "/secret", host="127.0.0.1:8080")], delay_s=0.5).unwanted == 1


def test_a_request_before_the_end_of_retry_after_is_too_soon() -> None:
    lines = [asked(0, 1, hold_ms=2000), asked(1000, 1001), asked(2001, 2002)]
    verdict = judge(lines, delay_s=0.5)
    assert verdict.too_soon == 1
    assert verdict.hosts[0].largest_too_soon_ms == 1000


def test_requests_before_an_answer_to_robots_txt_are_reported() -> None:
    host = "robots-flapping.tinyweb.test"
    busy = replace(asked(0, 1, "/robots.txt", host), status=503)
    known = asked(1000, 1001, "/robots.txt", host)
    assert judge([busy, known, asked(1500, 1501, host=host)], delay_s=0.5).before_robots == 0
    assert judge([busy, asked(500, 501, host=host), known], delay_s=0.5).before_robots == 1
    assert judge([asked(0, 1)], delay_s=0.5).before_robots == 1


def test_only_starts_are_judged_where_the_client_could_not_close() -> None:
    lines = [asked(0, 5000), asked(1000, 1001)]
    assert judge(lines, delay_s=0.5, starts_only=True).ok
    assert not judge([asked(0, 5000), asked(100, 101)], delay_s=0.5, starts_only=True).ok


def test_a_visit_and_what_it_loads_are_one_request() -> None:
    """The delay runs from the end of the last thing loaded; only the page that is visited may load."""
    host = "org-0009.tinyweb.test"
    visit = [asked(0, 10, "/about", host), asked(100, 110, "/app.js", host), asked(200, 260, "/data/about.json", host)]
    assert judge([*visit, asked(760, 770, "/news", host)], delay_s=0.5).ok
    early = judge([*visit, asked(660, 670, "/news", host)], delay_s=0.5)
    assert (early.shortfalls, early.largest_shortfall_ms) == (1, 100)
    assert judge([*visit, asked(220, 230, "/data/about.json", host)], delay_s=0.5, tolerance_ms=5).overlaps == 1
    assert judge([*visit, asked(760, 770, "/app.js", ORG)], delay_s=0.5).ok, "on another host it is a page"
    late = judge([*visit, asked(800, 810, "/news", host), asked(900, 910, "/data/about.json", host)], delay_s=0.5)
    assert late.strays == 1
    assert not late.ok
    assert not judge([asked(0, 10, "/data/.json", host)], delay_s=0.5).ok


def write(path: Path, *lines: Line) -> None:
    log = AccessLog(path)
    for line in lines:
        log.lines.append(
            (
                line.host, line.method, line.path, line.status, line.start_us, line.end_us, line.connection,
                line.bytes, line.hold_until_us,
            )
        )  # fmt: skip
    log.flush()
    log.close()


def test_what_is_written_can_be_read_and_half_a_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    write(path, asked(0, 1, "/caf\xe9?a=1"), asked(500, 501))
    with path.open("a") as file:
        file.write("org-0001.tinyweb.test\tGET\t/")
    assert [line.path for line in read(path)] == ["/caf\xe9?a=1", "/"]


def test_an_empty_log_proves_nothing_and_a_missing_one_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "access.log"
    assert judging.main([str(path), "--delay", "0.5"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    path.touch()
    assert judging.main([str(path), "--delay", "0.5", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False
    assert judging.main([str(path), "--delay", "0.5"]) == 1
    assert "clean" not in capsys.readouterr().out


@pytest.mark.parametrize(("second_ms", "code"), [(500, 0), (100, 1)])
def test_the_command_exits_with_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], second_ms: int, code: int
) -> None:
    path = tmp_path / "access.log"
    write(path, asked(0, 1), asked(second_ms, second_ms + 1))
    assert judging.main([str(path), "--delay", "0.5", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["shortfalls"] == code
    assert judging.main([str(path), "--delay", "0.5"]) == code
    assert "2 requests on 1 hosts" in capsys.readouterr().out
