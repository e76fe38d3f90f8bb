"""What people come for, in a browser over a running stack: begin a crawl, watch it, look at a host, try again."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect
from stack import Stack, Web
from waiting import wait_for


def test_a_crawl_is_made_and_watched_until_it_ends(page: Page, stack: Stack) -> None:
    page.goto(stack.url)
    page.get_by_role("link", name="New crawl").first.click()
    page.fill(
        "[name=seeds]",
        "http://garden.small.test/\nhttp://harbour.small.test/\n\nftp://x.test/\nhttp://garden.small.test/",
    )
    meant = page.locator("[data-checked]")
    expect(meant).to_contain_text("2 seeds on 2 sites, 1 duplicate removed, 1 refused")
    expect(meant).to_contain_text("Line 4: ftp://x.test/ is not an http or https URL")
    page.fill("[name=delay_s]", "0.5")
    expect(meant).to_contain_text("About 2 requests per second to each of 2 sites")
    page.get_by_role("button", name="Start the crawl").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was created: 1 seed cannot be crawled")
    expect(page.locator("[name=delay_s]")).to_have_value("0.5")  # what was typed is still there
    page.fill("[name=seeds]", page.input_value("[name=seeds]").replace("ftp://x.test/", ""))
    page.get_by_role("button", name="Start the crawl").click()

    expect(page.get_by_role("status").first).to_contain_text("Crawl created with 2 seeds")
    expect(page.locator("[data-live-mark]")).to_have_text("Live")
    page.evaluate("window.stayed = true")
    expect(page.locator("#pages")).to_have_text(re.compile(r"[4-9]|\d\d"), timeout=30_000)
    assert page.evaluate("window.stayed")  # it grew without the page being loaded again
    expect(page.locator(".head .badge")).to_have_text("finished", timeout=60_000)
    assert page.locator("figure.chart rect.bar").count() > 5
    expect(page.get_by_text("100 % settled")).to_be_visible()

    page.goto(stack.url + "/crawls?state=finished")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Crawl of garden.small.test and others")


def test_a_crawl_is_paused_resumed_and_cancelled(page: Page, stack: Stack) -> None:
    id = stack.client.submit({"delay_s": 5}, ["http://willow.small.test/"])
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{stack.url}/crawls/{id}")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".head .badge")).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".head .badge")).to_have_text("running")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".head .badge")).to_have_text("cancelled")
    assert stack.client.get(f"/v1/crawls/{id}")["state"] == "cancelled"


def test_the_timeline_of_a_host_shows_that_we_are_polite(page: Page, stack: Stack) -> None:
    id = stack.client.submit({"delay_s": 0.3}, ["http://garden.small.test/"])
    stack.until(id, "finished")
    page.goto(f"{stack.url}/hosts/garden.small.test")
    expect(page.get_by_text("every one waited for the delay")).to_be_visible()
    rows = page.locator(".timeline tbody tr")
    assert rows.count() >= 10
    drawn = page.evaluate(
        "[...document.querySelectorAll('.timeline tbody tr')].map((row) => [...row.querySelectorAll('rect')]"
        ".map((bar) => [Number(bar.getAttribute('x')), Number(bar.getAttribute('width'))]))"
    )
    for (delay_x, delay_width), (x, _) in drawn[1:]:
        assert delay_width > 0
        assert x >= delay_x + delay_width - 0.1  # each begins where its delay has ended
    page.fill("[name=url]", "/private/diary")
    page.get_by_role("button", name="Show the deciding rule").click()
    expect(page.locator(".lines .decides")).to_contain_text("Disallow: /private/")
    expect(page.get_by_text("forbidden")).to_be_visible()


def test_a_hosts_delay_is_changed_and_it_is_blocked_and_freed(page: Page, stack: Stack) -> None:
    stack.until(stack.client.submit({"max_pages": 1}, ["http://harbour.small.test/"]), "finished")
    page.goto(f"{stack.url}/hosts/harbour.small.test")
    page.fill("[name=delay_s]", "7.5")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("The delay is 7.5 s now")
    page.fill("[name=minutes]", "30")
    page.get_by_role("button", name="Block", exact=True).click()
    expect(page.locator(".head .badge").first).to_have_text("blocked")
    page.get_by_role("button", name="End all waits").click()
    expect(page.locator(".head .badge").first).to_have_text("ok")
    assert stack.client.get("/v1/hosts/harbour.small.test")["delay"]["operator_s"] == 7.5
    page.fill("[name=delay_s]", "")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Your delay is removed")


def test_a_failure_is_looked_at_and_replayed_to_success(page: Page, stack: Stack, web: Web) -> None:
    id = stack.client.submit({"delay_s": 0.1}, ["http://moody.small.test/", "http://moody.small.test/no"])
    assert sum(stack.until(id, "finished")["counts"]["failed"].values()) == 2
    page.goto(f"{stack.url}/failures?crawl={id}")
    expect(page.get_by_role("heading", name="2 dead letters")).to_be_visible()
    page.get_by_role("textbox", name="Cause").fill("Server error")  # as the page writes it
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("cause="))
    expect(page.get_by_role("heading", name=re.compile("dead letter")).first).not_to_have_text("0 dead letters")
    page.get_by_role("link", name="http://moody.small.test/", exact=True).click()
    expect(page.locator("h1")).to_have_text(re.compile("error", re.IGNORECASE))
    letter = stack.client.get(f"/v1/crawls/{id}/failures")["items"][0]
    expect(page.get_by_text(letter["request_id"])).to_be_visible()
    expect(page.get_by_text("GET http://moody.small.test/")).to_be_visible()

    web.good = True
    try:
        page.goto(f"{stack.url}/failures?crawl={id}")
        page.get_by_role("button", name="Replay these…").click()
        expect(page.locator("h1")).to_have_text("Replay 2 dead letters?")
        assert stack.client.get(f"/v1/crawls/{id}")["state"] == "finished"  # a dry run
        page.get_by_role("button", name="Replay now").click()
        expect(page.get_by_role("status").first).to_contain_text("2 dead letters reopened")
        expect(page.locator(".head .badge")).to_have_text("finished", timeout=60_000)
        wait_for(lambda: not stack.client.get(f"/v1/crawls/{id}/failures")["items"])
        counts = stack.client.get(f"/v1/crawls/{id}")["counts"]
        assert counts["failed"] == {}
        assert counts["pages"] >= 1
    finally:
        web.good = False


def test_only_those_ticked_are_replayed(page: Page, stack: Stack) -> None:
    id = stack.client.submit({"delay_s": 0.1}, [f"http://evil.small.test/fail/{n}" for n in range(3)])
    stack.until(id, "finished")
    page.goto(f"{stack.url}/failures?crawl={id}")
    page.get_by_role("checkbox", name="/fail/1").check()
    page.get_by_role("button", name="Replay selected…").click()
    expect(page.locator("h1")).to_have_text("Replay 1 dead letter?")
    page.get_by_role("button", name="Replay now").click()
    expect(page.get_by_role("status").first).to_contain_text("1 dead letter reopened")
    stack.until(id, "finished")
    letters = stack.client.get(f"/v1/crawls/{id}/failures?replayed=true")["items"]
    assert [one["url"][-1] for one in letters if one["replayed"]] == ["1"]


def test_pages_are_searched_opened_and_downloaded(page: Page, stack: Stack) -> None:
    id = stack.client.submit({"delay_s": 0.05}, ["http://orchard.small.test/"])
    stack.until(id, "finished")
    page.goto(f"{stack.url}/crawls/{id}/pages")
    page.keyboard.press("/")
    page.keyboard.type("lantern")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("tbody a").click()
    expect(page.locator(".foreign")).to_contain_text("The Lantern room of orchard has")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the stored response").click()
    assert "<h1>Lantern</h1>" in download.value.path().read_text()
    page.goto(f"{stack.url}/crawls/{id}/export")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download pages.csv").click()
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == 1 + stack.client.get(f"/v1/crawls/{id}")["counts"]["pages"]


def test_the_overview_is_live_and_knows_its_workers(page: Page, stack: Stack) -> None:
    page.goto(stack.url)
    expect(page.locator("[data-live-mark]")).to_have_text("Live")
    expect(page.get_by_text("worker@").first).to_be_visible()
    page.evaluate("window.stayed = true")
    id = stack.client.submit({"delay_s": 3}, ["http://compass.small.test/"])
    row = page.get_by_role("row", name=f"compass.small.test {id[:8]}…{id[-4:]}")
    expect(row).to_be_visible()
    assert page.evaluate("window.stayed")
    stack.client.post(f"/v1/crawls/{id}/cancel")
    expect(row).to_have_count(0)


def test_a_url_is_explained(page: Page, stack: Stack) -> None:
    seeds = ["http://garden.small.test/private/diary"]
    stack.until(stack.client.submit({"delay_s": 0.05}, seeds), "finished")
    page.goto(f"{stack.url}/explain")
    page.fill("[name=url]", "http://garden.small.test/private/diary")
    page.keyboard.press("Enter")
    expect(page.locator(".why").first).to_contain_text("robots.txt disallows it")
    expect(page.locator("main .facts")).to_contain_text("forbids it by Disallow: /private/")


def test_keys_lead_everywhere_and_the_theme_is_kept(page: Page, stack: Stack) -> None:
    page.goto(stack.url)
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("f")
    expect(page.locator("h1")).to_have_text("Failures")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark theme").click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_without_scripts_everything_can_be_read_and_a_crawl_be_made(browser: Browser, stack: Stack) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(stack.url)
    expect(page.get_by_text("Pages per second", exact=True)).to_be_visible()
    page.goto(f"{stack.url}/new")
    page.fill("[name=seeds]", "http://lantern.small.test/")
    page.get_by_role("button", name="Check the seeds").click()
    expect(page.locator("[data-checked]")).to_contain_text("1 seed on 1 site")
    page.fill("[name=max_pages]", "1")
    page.get_by_role("button", name="Start the crawl").click()
    expect(page.locator("h1")).to_have_text("Crawl of lantern.small.test")
    context.close()


def test_a_schedule_is_made_paused_and_removed(page: Page, stack: Stack) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{stack.url}/schedules")
    page.get_by_role("link", name="New schedule").click()
    expect(page.locator("h1")).to_have_text("New schedule")
    page.fill("[name=seeds]", "http://garden.small.test/")
    page.fill("[name=schedule_name]", "Mornings")
    page.fill("[name=cron]", "0 25 * * *")
    page.get_by_role("button", name="Create the schedule").click()
    expect(page.get_by_role("alert")).to_be_visible()  # there is no hour 25
    page.fill("[name=cron]", "0 6 * * *")
    page.get_by_role("button", name="Create the schedule").click()
    expect(page.locator("h1")).to_have_text("Mornings")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".head .badge")).to_have_text("paused")
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Schedule Mornings removed")).to_be_visible()
