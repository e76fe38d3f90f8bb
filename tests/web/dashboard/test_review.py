"""Reviewing records with the keyboard: the evidence marked, what is not supported struck through."""

from __future__ import annotations

import re

import pytest
from places import put_contradicted, put_doubtful
from playwright.sync_api import Page, expect
from stack import Stack


@pytest.fixture(scope="module")
def crawl(stack: Stack) -> str:
    wishes = {"delay_s": 0.05, "schema": "organization", "rubric": "esg"}
    id = stack.client.submit(wishes, ["http://garden.small.test/", "http://harbour.small.test/"])
    stack.until(id, "finished")
    return str(id)


def test_records_are_approved_corrected_and_rejected_by_key(page: Page, stack: Stack, crawl: str) -> None:
    first, second, third = put_doubtful(stack, crawl)
    page.goto(f"{stack.url}/review?crawl={crawl}")
    expect(page.get_by_role("heading", name="3 records to review")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")

    # Every value leads to its evidence; what the model made up is struck through.
    expect(page.locator("s")).to_have_text("1887")
    expect(page.get_by_text("founded in 1887 by two sisters")).to_be_visible()
    marked = page.locator("mark", has_text="Our mission is to grow food without poison, for everybody.")
    expect(marked).to_be_visible()
    row = page.locator(".value-row", has_text="/mission")
    row.get_by_role("link", name="Evidence").focus()
    expect(marked).to_have_class("now")
    expect(page.get_by_role("heading", name="Scores: esg")).to_be_visible()
    expect(page.get_by_text('1 quote with "emissions"')).to_be_visible()  # the reason of a score

    page.keyboard.press("j")
    expect(page).to_have_url(f"{stack.url}/review/{second}?crawl={crawl}")
    page.keyboard.press("k")
    expect(page).to_have_url(f"{stack.url}/review/{first}?crawl={crawl}")

    page.keyboard.press("a")
    expect(page.get_by_text(f"Approved: record {first}.")).to_be_visible()
    assert stack.client.get(f"/v1/records/{first}/review")["status"] == "published"
    page.keyboard.press("u")
    expect(page.get_by_text(f"Undone: record {first} is held again.")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/review/{first}\?crawl={crawl}&note="))
    assert stack.client.get(f"/v1/records/{first}/review")["status"] == "held"
    page.keyboard.press("a")
    expect(page.get_by_text(f"Approved: record {first}.")).to_be_visible()
    expect(page.get_by_role("heading", name="2 records to review")).to_be_visible()

    page.keyboard.press("e")
    page.get_by_label("/founded_year (withheld)").fill("1987")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="1 record to review")).to_be_visible()
    known = stack.client.get(f"/v1/records/{second}/review")
    assert known["reviews"][0]["decision"] == "correct"
    assert known["data"]["founded_year"] == 1987

    page.keyboard.press("r")
    expect(page.get_by_text("Nothing to review.")).to_be_visible()
    page.get_by_role("link", name=f"Back to record {third}").click()  # a wrong key is no harm
    expect(page).to_have_url(f"{stack.url}/review/{third}")
    expect(page.locator(".head .badge")).to_have_text("rejected")
    assert stack.client.get(f"/v1/records/{third}/review")["status"] == "rejected"


def test_a_record_that_was_published_is_listed_and_exported(page: Page, stack: Stack, crawl: str) -> None:
    page.goto(f"{stack.url}/crawls/{crawl}/records")
    assert page.locator("tbody tr").count() >= 2
    page.goto(f"{stack.url}/crawls/{crawl}/export")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download records.jsonl").click()
    lines = download.value.path().read_text().splitlines()
    assert len(lines) >= 2
    assert "1887" not in download.value.path().read_text()  # what is withheld never leaves


def test_one_of_the_contradicting_values_is_chosen(page: Page, stack: Stack, crawl: str) -> None:
    id = put_contradicted(stack, crawl)
    page.goto(f"{stack.url}/review?crawl={crawl}")
    page.get_by_label("Decide about").select_option("contradicted fields")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody code")).to_have_text("/founded_year")
    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", name="1 contradicted field")).to_be_visible()
    expect(page.locator(".candidate q")).to_have_count(2)

    page.get_by_role("button", name="Save the choice").click()
    expect(page.get_by_text("Nothing was chosen.")).to_be_visible()
    page.goto(f"{stack.url}/review/{id}?crawl={crawl}&needs=field")
    page.get_by_role("radio", name="1901").check()
    page.get_by_role("button", name="Save the choice").click()
    expect(page.get_by_text(f"Chosen: record {id}.")).to_be_visible()
    known = stack.client.get(f"/v1/records/{id}/review")
    assert (known["data"]["founded_year"], known["status"], known["contradicted"]) == (1901, "published", [])

    page.get_by_role("button", name=f"Undo the decision on record {id}").click()
    expect(page.get_by_role("heading", name="1 contradicted field")).to_be_visible()
    page.get_by_role("radio", name="None of them").check()
    page.get_by_role("button", name="Save the choice").click()
    expect(page.get_by_text(f"Chosen: record {id}.")).to_be_visible()
    known = stack.client.get(f"/v1/records/{id}/review")
    assert ("founded_year" in known["data"], known["contradicted"]) == (False, [])
