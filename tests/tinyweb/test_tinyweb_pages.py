"""The shape of the organisations' sites: sizes, links, reachability."""

from __future__ import annotations

import re

import pytest

from curtsy.tinyweb.facts import Kind, org_host
from curtsy.tinyweb.pages import OrgSite, Shape

BENCHMARK = Shape(pages=100, page_kb=20, links=40)


def links_of(site: OrgSite, path: str) -> list[str]:
    return re.findall(r'<a href="([^"]+)"', site.html(path))


def reached(site: OrgSite) -> set[str]:
    found, waiting = {"/"}, ["/"]
    while waiting:
        new = {link for link in links_of(site, waiting.pop()) if link in site.paths} - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("shape", [Shape(), Shape(pages=7), Shape(pages=1), Shape(pages=40), BENCHMARK])
@pytest.mark.parametrize("number", [0, 1, 6])
def test_every_page_is_reached_from_the_home_page(shape: Shape, number: int) -> None:
    site = OrgSite(org_host(number), shape)
    assert reached(site) == set(site.paths)
    assert len(site.paths) == (3 if site.org.kind is Kind.THIN else shape.pages)


def test_pages_for_benchmarks_have_the_asked_size_and_number_of_links() -> None:
    site = OrgSite(org_host(4), BENCHMARK)
    for path in site.paths:
        assert 18_000 <= len(site.html(path).encode()) <= 22_000
        assert len(links_of(site, path)) == 40


def test_no_two_pages_for_benchmarks_are_alike() -> None:
    site = OrgSite(org_host(3), BENCHMARK)
    assert len({site.html(path) for path in site.paths}) == len(site.paths)


def test_sites_for_benchmarks_need_no_script() -> None:
    kinds = {OrgSite(org_host(number), BENCHMARK).org.kind for number in range(10)}
    assert kinds == {Kind.JSONLD, Kind.PROSE}


def test_script_only_pages_are_found_through_the_sitemap() -> None:
    site = OrgSite(org_host(4), Shape())
    listed = re.findall(r"<loc>http://[^/]+([^<]+)</loc>", site.sitemap())
    assert listed == site.paths
    assert "Sitemap: http://org-0004.tinyweb.test/sitemap.xml" in site.robots()


def test_the_home_page_links_to_what_robots_forbids() -> None:
    site = OrgSite(org_host(1), Shape())
    assert "/internal/drafts" in links_of(site, "/")
    assert site.answer("/internal/drafts").status == 200
    assert site.answer("/nowhere").status == 404
