"""Every page, with the worst that a website can send: nothing runs, nothing overflows, everybody can use it."""

from __future__ import annotations

import pytest
from accessible import faults
from places import Furnished, furnish, places, views_without_a_place
from playwright.sync_api import Page
from stack import Stack

from curtsy.web.dashboard.site import VIEWS

#: no pages: parts of some, streams, files
NO_PAGES = (
    "/overview/part",
    "/overview/events",
    "/crawls/<id>/part",
    "/crawls/<id>/events",
    "/crawls/<id>/export/<name>",
    "/pages/<id>/content",
    "/pages/<id>/pictures/<number>",
    "/responses/<id>/content",
    "/selectors/page-objects.py",
    "/static/<name>",
    "/favicon.ico",
    "/sign-in",
)


@pytest.fixture(scope="module")
def furnished(stack: Stack) -> Furnished:
    return furnish(stack)


@pytest.fixture(scope="module")
def paths(furnished: Furnished) -> dict[str, str]:
    return places(furnished)


def test_no_page_is_forgotten_here(paths: dict[str, str]) -> None:
    rules = [view.rule for view in VIEWS if view.method == "GET" and view.rule not in NO_PAGES]
    assert views_without_a_place(rules, list(paths.values())) == []


def test_nothing_of_a_hostile_page_runs_on_any_page(page: Page, stack: Stack, paths: dict[str, str]) -> None:
    said: list[str] = []
    asked: set[str] = set()
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    page.on("dialog", lambda dialog: (said.append(f"{page.url}: dialog"), dialog.dismiss()))
    page.on("request", lambda request: asked.add(request.url.split("/")[2]))
    shown = 0
    for name, path in paths.items():
        answer = page.goto(stack.url + path)
        assert answer is not None
        assert answer.status == (404 if name == "error" else 200), f"{name}: {answer.status} {page.content()[:2000]}"
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert page.evaluate("window.__evil") is None, name
        for where in ("[style]", "script:not([src])", "style", "[onerror]", "[onload]", "[onclick]", "[srcdoc]"):
            assert page.locator(where).count() == 0, f"{name}: {where}"
        assert page.locator("a[href^='javascript' i], iframe, object, embed").count() == 0, name
        _check_frame(page, name)
        shown += "window.__evil" in page.locator("main").inner_text()
        # Nothing turns the text of the page around.
        assert not set("\u202e\u202d\u2066\u2067") & set(page.locator("body").inner_text()), name
    assert shown >= 4  # it was there to be seen
    assert [line for line in said if "404" not in line] == []
    assert asked == {stack.url.split("/")[2]}


def test_everybody_can_use_every_page(page: Page, stack: Stack, paths: dict[str, str]) -> None:
    found: list[str] = []
    for name, path in paths.items():
        page.goto(stack.url + path)
        found += faults(page, name)
    assert found == []


def test_everybody_can_use_the_pages_that_answer_forms(page: Page, stack: Stack, furnished: Furnished) -> None:
    """Previews of what would be done, the test of a schema, and mistakes."""
    forms = {
        "replay": ("/failures/replay", {}, "dead letter"),
        "review-many": ("/review/many", {"decision": "reject", "ids": furnished.doubtful}, "reject"),
        "schema-test": ("/new/test", {"seeds": "x", "schema_text": "name", "test_page": furnished.page}, "name"),
        "schema-wrong": (
            "/new/test",
            {"seeds": "x", "schema_text": "{", "test_page": furnished.page},
            "not valid json",
        ),
    }
    found: list[str] = []
    for name, (action, given, says) in forms.items():
        page.goto(f"{stack.url}/failures")
        with page.expect_navigation():
            page.evaluate(_SUBMIT, [action, given])
        assert says in page.locator("main").inner_text().lower(), name
        found += faults(page, name)
    assert found == []


_SUBMIT = """([action, given]) => {
  const form = document.createElement('form')
  form.method = 'post'
  form.action = action
  given.csrf = document.querySelector('input[name=csrf]').value
  for (const [name, value] of Object.entries(given)) {
    const field = document.createElement('input')
    field.name = name
    field.value = value
    form.append(field)
  }
  document.body.append(form)
  form.submit()
}"""


def test_everybody_can_use_the_api_reference(page: Page, stack: Stack) -> None:
    page.goto(f"{stack.url}/docs")
    # Names of odd and even length: all four ways of looking at it.
    assert faults(page, "docs") + faults(page, "reference") == []


def _check_frame(page: Page, name: str) -> None:
    """Landmarks, one heading, a title; and in every form the token."""
    assert page.locator("h1").count() == 1, name
    assert page.locator("main").count() == 1, name
    assert page.title().endswith("· Curtsy"), name
    assert page.locator("nav[aria-label=Main]").count() == 1, name
    forms, tokens = page.locator("form[method=post]"), page.locator("form[method=post] input[name=csrf]")
    assert forms.count() == tokens.count(), name
