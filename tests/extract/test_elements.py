"""CSS and XPath in their own process: the same answers, and an end whatever the page."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from curtsy.content.document import Document
from curtsy.core.observe import counters
from curtsy.extract import elements, selectors
from curtsy.extract.elements import Elements, is_light
from curtsy.extract.sources import sources_of
from curtsy.grounding import schema as schemas
from curtsy.grounding.schema_hints import Selector

HTML = """<main><h1 id=a>Who <b>we</b> are</h1><p>One <i>1</i></p><p>Two</p></main><a href=/x title="a b">y</a>"""


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    elements.close()


def of(html: str) -> Elements:
    return Elements(Document.parse(html.encode(), "text/html", "http://a.test/"))


@pytest.mark.parametrize(
    ("selector", "texts"),
    [
        (Selector(css="h1"), ["Who we are"]),
        (Selector(css="main h1"), ["Who we are"]),
        (Selector(css="main p:last-child"), ["Two"]),
        (Selector(css="h1 ~ p"), ["One 1", "Two"]),
        (Selector(css="body a", attribute="Href"), ["/x"]),
        (Selector(xpath="//h1"), ["Who we are"]),
        (Selector(xpath="//p[2]"), ["Two"]),
        (Selector(xpath="//p[contains(., 'One')]/i/text()"), ["1"]),
        (Selector(xpath="//a", attribute="title"), ["a b"]),
        (Selector(xpath="string(//h1/@id)"), ["a"]),
        (Selector(xpath="count(//p)"), ["2.0"]),
        (Selector(xpath="//nothing"), []),
        (Selector(xpath="unknown-function()"), []),
    ],
)
def test_elements_are_found(selector: Selector, texts: list[str]) -> None:
    assert of(HTML).texts(selector) == texts


def test_css_that_is_linear_needs_no_process() -> None:
    assert of(HTML).texts(Selector(css='main > h1, a[title="a b"]')) == ["Who we are", "y"]
    assert elements._child.id is None
    assert not is_light("main h1")
    assert not is_light("p:first-child")
    assert not is_light("p ~ p")


LIST = "<ul><li><b>One</b><i>1</i></li><li><b></b><i>2</i></li></ul>"


@pytest.mark.parametrize(
    ("names", "numbers", "in_process"),
    [
        (Selector(css="b"), Selector(css="i"), False),
        (Selector(css="b"), Selector(css="li > i, li"), True),
        (Selector(css="ul b"), Selector(css="i"), True),
        (Selector(xpath="//b"), Selector(xpath="//i/text()"), False),
    ],
)
def test_elements_tell_what_holds_them(names: Selector, numbers: Selector, in_process: bool) -> None:
    page = of(LIST)
    one, two = page.found(names, in_process=in_process)
    assert (one.text, two.text) == ("One", "")  # what has no text has a place
    found = [element for element in page.found(numbers, in_process=in_process) if element.text in ("1", "2")]
    assert found[0].chain[-1] == one.chain[-1]
    shared = [node for node in found[0].chain if node in one.chain]
    assert shared == list(one.chain[1:])
    assert not set(found[1].chain) & set(one.chain[:2])
    assert set(found[1].chain) & set(one.chain[2:])


@pytest.mark.parametrize("selector", [Selector(css="b"), Selector(css="body b")])
def test_what_is_too_deep_has_no_place(selector: Selector) -> None:
    deep, high = of("<div>" * 300 + "<b>x</b>").found(selector), of("<div>" * 30 + "<b>x</b>").found(selector)
    assert [(one.text, len(one.chain)) for one in deep] == [("x", 0)]
    assert len(high[0].chain) > 30


def test_what_is_no_part_of_the_page_has_no_place() -> None:
    assert of(HTML).found(Selector(xpath="count(//p)")) == [("2.0", ())]
    assert of(HTML).found(Selector(xpath="//h1/@id"))[0].chain == of(HTML).found(Selector(xpath="//h1"))[0].chain


DEEP = "<div>" * 900
CHAINS = ("<div>" * 240 + "x" + "</div>" * 240) * 60


@pytest.mark.parametrize(
    ("html", "selector"),
    [
        (DEEP, Selector(css="q div div div div div div")),
        (CHAINS, Selector(xpath="//*[count(//*[count(//*) = 1]) = 1]")),
    ],
    ids=["css", "xpath"],
)
def test_an_expression_that_does_not_end_is_ended_and_others_continue(html: str, selector: Selector) -> None:
    before = counters["selector_stopped"]
    hostile, friendly = of(html), of(HTML)
    assert friendly.texts(Selector(css="main h1")) == ["Who we are"]
    assert hostile.texts(selector) == []
    assert counters["selector_stopped"] == before + 1
    child = elements._child.id
    assert hostile.texts(Selector(css="body div")) == []  # the page has had its time
    assert elements._child.id == child
    assert friendly.texts(Selector(css="main h1")) == ["Who we are"]
    assert counters["selector_stopped"] == before + 1


def test_pages_of_several_threads_are_not_mixed_up() -> None:
    found: dict[int, set[str]] = {}

    def look(number: int) -> None:
        page = of(f"<main><p>{number}</p></main>")
        found[number] = {text for _ in range(20) for text in page.texts(Selector(css="main p"))}

    threads = [threading.Thread(target=look, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: {str(number)} for number in range(4)}


def test_a_process_that_died_is_replaced() -> None:
    page = of(HTML)
    assert page.texts(Selector(css="main h1")) == ["Who we are"]
    child = elements._child.start()
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert page.texts(Selector(css="main h1")) == ["Who we are"]


def test_a_forked_process_has_its_own() -> None:
    page = of(HTML)
    assert page.texts(Selector(css="main h1")) == ["Who we are"]
    pid = os.fork()
    if pid == 0:
        fine = page.texts(Selector(css="main p")) == ["One 1", "Two"]
        elements.close()
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert page.texts(Selector(css="main h1")) == ["Who we are"]


def test_a_list_is_read_without_the_leaf_that_took_too_long() -> None:
    item = {
        "type": "object",
        "properties": {"slow": {"type": "string"}, "a": {"type": "string"}, "b": {"type": "string"}},
    }
    hints = {"products.*.a": "b", "products.*.slow": "q div div div div div div", "products.*.b": "i"}
    schema = schemas.inline(
        {
            "type": "object",
            "properties": {"products": {"type": "array", "items": item}},
            "x-curtsy": {"selectors": hints},
        }
    )
    body = "<ul><li><b>One</b></li><li><b>Two</b><i>2</i></li></ul>" + DEEP
    before = counters["selector_stopped"]
    page = sources_of("p1", "http://a.test/", body.encode(), "text/html; charset=utf-8")
    claims = [(claim.path, claim.value) for claim in selectors.claims(schema, page)]
    assert claims == [("/products/0/a", "One"), ("/products/1/a", "Two"), ("/products/1/b", "2")]
    assert counters["selector_stopped"] == before + 1
