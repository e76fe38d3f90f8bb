"""The arithmetic of the benchmarks: what they print decides what we believe."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from bench import documents
from bench.contestants import last_document
from bench.polite import Sent, steady_of
from bench.report import Bar, Section, number, with_sections
from bench.site import LINKS_PER_PAGE, Site, links_of, paragraphs, path_of, render, write_into
from bench.tls import times_of
from curtsy.content.documents.model import Limits
from curtsy.content.documents.reading import read_document

SITE = Site(folder=Path("unused"), hosts=7, pages=100, port=8080)


def page_at(host: str, start_s: float, delay_s: float = 1.0) -> Sent:
    return Sent(host=host, start_ms=int(start_s * 1000), delay_ms=int(delay_s * 1000), is_page=True)


def test_every_page_of_the_site_is_reachable_from_the_home_page() -> None:
    numbers = {path_of(page): page for page in range(SITE.pages)}
    reached, left = {0}, [0]
    while left:
        page = left.pop()
        hrefs = links_of(SITE, 3, page, random.Random(page))
        new = {numbers[href] for href in hrefs if href in numbers} - reached
        reached |= new
        left += new
    assert reached == set(range(SITE.pages))


def test_a_page_has_its_links_and_its_size_and_is_always_the_same() -> None:
    prose = paragraphs(random.Random(7))
    html = render(SITE, 2, 14, prose)
    assert html.count("<a ") == LINKS_PER_PAGE
    assert 16_000 < len(html) < 25_000
    assert html == render(SITE, 2, 14, prose)


@pytest.mark.parametrize("kb", [20, 100, 250])
def test_larger_pages_have_the_size_that_the_benchmark_names_and_no_repeated_text(kb: int, tmp_path: Path) -> None:
    made = Site(folder=tmp_path, hosts=1, pages=10, port=8080)
    write_into(made, times=times_of(kb))
    pages = [file.read_bytes() for file in tmp_path.rglob("*.html")]
    assert len(pages) == made.pages
    assert sum(map(len, pages)) / len(pages) == pytest.approx(kb * 1000, rel=0.1)
    assert len(gzip.compress(pages[0])) > len(pages[0]) / 5


def test_a_polite_crawl_is_measured_from_the_second_page_of_every_host_on() -> None:
    log = [page_at("a", 0.2 + n * 1.01) for n in range(20)] + [page_at("b", 2 + n * 1.03) for n in range(20)]
    steady = steady_of(log, seconds=10)
    assert steady.pages_per_s == pytest.approx(2.0, abs=0.1)
    assert steady.late_p50_ms in (10, 30)
    assert steady.late_max_ms in (29, 30, 31)


def test_hosts_that_go_in_step_are_counted_without_losing_a_wave() -> None:
    log = [page_at(f"h{host}", 0.5 + host * 0.0004 + wave * 1.02) for host in range(100) for wave in range(25)]
    assert steady_of(log, seconds=10).pages_per_s == pytest.approx(100 / 1.02, rel=0.01)


def test_a_stall_of_all_hosts_lowers_the_rate() -> None:
    stalled = [page_at(f"h{host}", wave * 1.0 + (5 if wave > 6 else 0)) for host in range(10) for wave in range(30)]
    assert steady_of(stalled, seconds=10).pages_per_s < 6


def test_lateness_is_never_taken_across_two_hosts() -> None:
    log = [page_at("a", n) for n in range(10)] + [page_at("b", n + 0.5) for n in range(10)]
    assert steady_of(log, seconds=5).late_max_ms == 0


@pytest.mark.parametrize(
    ("value", "limit", "at_least", "holds"),
    [(8.1, 8, True, True), (7.9, 8, True, False), (2.4, 2.5, False, True), (2.6, 2.5, False, False)],
)
def test_a_bar_says_whether_it_holds(value: float, limit: float, at_least: bool, holds: bool) -> None:
    bar = Bar(what="x", value=value, limit=limit, at_least=at_least)
    assert bar.holds is holds
    assert str(bar).startswith("held" if holds else "NOT HELD")


@pytest.mark.parametrize("value", [0.0, -0.06, float("nan"), float("inf")])
@pytest.mark.parametrize("at_least", [True, False])
def test_an_impossible_figure_holds_no_bar(value: float, at_least: bool) -> None:
    assert not Bar(what="bytes per URL", value=value, limit=16, at_least=at_least).holds


def test_a_section_is_a_table_in_markdown() -> None:
    section = Section(title="T", head=("a", "b"), rows=(("1", "2"),))
    assert section.markdown() == "## T\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_figures_keep_three_digits() -> None:
    assert [number(n) for n in (0.12345, 12.345, 123.4, 12345.6)] == ["0.123", "12.3", "123", "12,346"]


def test_the_last_document_of_a_crawler_is_read_however_it_is_laid_out() -> None:
    assert last_document('{"pages": 3}') == {"pages": 3}
    assert last_document('{\n "pages": 3\n}\n') == {"pages": 3}
    assert last_document('noise\n{"pages": 3}\n') == {"pages": 3}


def test_new_sections_stand_where_those_of_their_title_stood_or_at_the_end() -> None:
    older = "# Benchmarks\n\nMachine: x\n\n## A\n\nold\n\n| a |\n\n- bar\n\n## B\n\nkept\n"
    new = with_sections(older, [Section(title="A", text="new"), Section(title="C", text="more")])
    assert new == "# Benchmarks\n\nMachine: x\n\n## A\n\nnew\n\n## B\n\nkept\n\n## C\n\nmore\n"
    assert with_sections(new, []) == new


@pytest.mark.parametrize("case", documents.cases(2), ids=lambda case: str(case.kind))
def test_the_documents_of_the_benchmark_are_read_completely(case: documents.Case) -> None:
    file = read_document(case.kind, case.body, Limits())
    assert (file.problem, file.truncated) == ("", False)
    assert file.tables
    assert "page 1 line 38" in file.text or file.text.count("Row 49") == 2
