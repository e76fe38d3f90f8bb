"""One visit of one page: opened in its own context, awaited until it is at rest, read, and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curtsy.content import reading
from curtsy.content.parser_limits import HEAVY_TAGS
from curtsy.fetch.browser_requests import Gate
from curtsy.fetch.transfer import boot_clock

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

#: a page is at rest if it made no request and did not change for this long
_QUIET_S = 0.4
#: a page that is never at rest is read after this time
_RESTLESS_S = 15.0
#: a page at rest without content gets this much more time: a timer may fill it
_EMPTY_S = 5.0
#: a longer document has content
_EMPTY_CHARS = 1_000_000
#: how often a page that grows while scrolling is scrolled again
_SCROLLS = 4
_SCREENSHOT_S = 5.0
#: interval of checks whether a page has content
_READ_S = 1.0
#: a reload of the page ends what is being evaluated
_TRIES = 10
_AGAIN_S = 0.1

#: replaces the history entry: a visit must not end at the empty page that a tab starts with
_GO = "(url) => { setTimeout(() => location.replace(url), 0); }"
#: Resolves when the document is loaded and did not change for `ms` milliseconds. Attributes are not observed:
#: animations change them forever.
_AT_REST = """(ms) => new Promise((done) => {
  let timer = null;
  const observer = new MutationObserver(wait);
  function end() {
    if (document.readyState === "loading") { wait(); return; }
    observer.disconnect();
    done(null);
  }
  function wait() { clearTimeout(timer); timer = setTimeout(end, ms); }
  observer.observe(document, {subtree: true, childList: true, characterData: true});
  wait();
})"""
#: Resolves when the document changes, or after `ms` milliseconds.
_NEXT_CHANGE = """(ms) => new Promise((done) => {
  const observer = new MutationObserver(end);
  function end() { observer.disconnect(); done(null); }
  observer.observe(document, {subtree: true, childList: true, characterData: true});
  setTimeout(end, ms);
})"""
#: Scrolls down the page in steps, so that lazy content loads; returns the page's height.
_SCROLL = """async () => {
  const view = window.innerHeight, height = () => document.documentElement?.scrollHeight ?? 0;
  for (let step = 0; step < 30 && window.scrollY + view < height(); step += 1) {
    window.scrollBy(0, view);
    await new Promise((done) => setTimeout(done, 30));
  }
  return height();
}"""
_HEIGHTS = "() => [document.documentElement?.scrollHeight ?? 0, window.innerHeight]"
#: The document, or its length if that is over the limit; null: it was not fetched. If a script changed the page's
#: address, its links are relative to the new one: a <base> element records it.
_READ = """(most) => {
  if (!/^https?:$/.test(location.protocol)) return null;
  const type = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + "\\n" : "";
  const html = document.documentElement ? document.documentElement.outerHTML : "";
  const all = type + based(html);
  return all.length > most ? all.length : all;

  function based(html) {
    try {
      const asked = performance.getEntriesByType("navigation")[0].name, base = new URL(document.baseURI);
      if (new URL(asked).pathname === location.pathname || base.host !== location.host) return html;
      const head = document.head.cloneNode(false).outerHTML.replace("</head>", "");
      const note = document.createElement("base");
      note.setAttribute("href", base.href);
      const [before, ...after] = html.split(head);
      return after.length ? before + head + note.outerHTML + after.join(head) : html;
    } catch { return html; }
  }
}"""


class Hung(Exception):
    """The page or the browser does not answer."""


class Crashed(Exception):
    """The page's process, or the browser, ended."""


class TooLarge(Exception):
    """The document is over the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitResult:
    """The result of a visit."""

    html: bytes
    screenshot: bytes | None = None


#: navigates a page and reads it
See = Callable[["Page"], Coroutine[Any, Any, VisitResult]]


async def new_context(browser: Browser, user_agent: str) -> BrowserContext:
    return await browser.new_context(
        user_agent=user_agent,
        accept_downloads=False,
        service_workers="block",
        viewport={"width": 1280, "height": 1024},
        locale="en-US",
        reduced_motion="reduce",
    )


async def look(context: BrowserContext, gate: Gate, see: See, *, until: float) -> VisitResult:
    """Opens a page behind the gate and lets `see` navigate and read it; `until`: boot clock.

    Opening it has the same time limit: a browser that dies or hangs meanwhile never answers.
    """
    crashed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def crash(what: str) -> None:
        if not crashed.done():
            crashed.set_result(what)

    def gone(_: Any) -> None:
        crash("the browser ended")

    async def opened() -> VisitResult:
        await gate.install(context)
        page = await context.new_page()
        gate.watch(page)
        page.on("crash", lambda _: crash("the page's process ended"))
        context.on("page", _close_popup)
        return await see(page)

    if (browser := context.browser) is not None:
        browser.on("disconnected", gone)
    seeing = asyncio.ensure_future(opened())
    try:
        await asyncio.wait((seeing, crashed), timeout=until - boot_clock(), return_when=asyncio.FIRST_COMPLETED)
        if crashed.done():
            raise Crashed(crashed.result())
        if not seeing.done():
            raise Hung("the page does not answer")
        return seeing.result()
    finally:
        if not seeing.done():
            seeing.cancel()
        with suppress(BaseException):
            await asyncio.wait((seeing,), timeout=1.0)
        if seeing.done() and not seeing.cancelled():
            seeing.exception()  # how it ended is known by then
        crashed.cancel()
        if browser is not None:
            browser.remove_listener("disconnected", gone)


async def see_plainly(page: Page, gate: Gate, url: str, max_bytes: int, screenshot: bool) -> VisitResult:
    async with page.expect_navigation(wait_until="commit", timeout=0):
        await page.evaluate(_GO, url)
    await come_to_rest(page, gate)
    html = await read(page, max_bytes)
    picture = await _picture(page) if screenshot else None
    return VisitResult(html=html, screenshot=picture)


async def come_to_rest(page: Page, gate: Gate) -> None:
    """Waits until the page is at rest with content, was scrolled to its end, and is at rest again; or too long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_RESTLESS_S):
            await _rest(page, gate)
            await _fill(page, gate)
            await _scroll(page, gate)


async def read(page: Page, max_bytes: int) -> bytes:
    if page.url.startswith("chrome-error:"):
        raise Crashed("the browser shows an internal page instead")
    found = await _evaluate(page, _READ, max_bytes)
    if found is None:
        raise Crashed("the page navigated away from its site")
    html = b"" if isinstance(found, int) else found.encode("utf-8", "replace")
    if isinstance(found, int) or len(html) > max_bytes:
        raise TooLarge(f"the document is over {max_bytes} bytes")
    return html


async def _rest(page: Page, gate: Gate) -> None:
    """No requests, and no changes."""
    while True:
        await _evaluate(page, _AT_REST, int(_QUIET_S * 1000))
        if (quiet_s := gate.quiet_s) >= _QUIET_S:
            return
        await asyncio.sleep(_QUIET_S - quiet_s)


async def _fill(page: Page, gate: Gate) -> None:
    """Gives a page whose root element is empty more time, until it has changed and is at rest again."""
    # Half of the time that is left is for reading the page.
    until = boot_clock() + min(_EMPTY_S, (gate.until - boot_clock()) / 2)
    while (left_s := until - boot_clock()) > 0 and await _is_empty(page):
        await _evaluate(page, _NEXT_CHANGE, int(left_s * 1000))
        await _rest(page, gate)


async def _is_empty(page: Page) -> bool:
    from curtsy.content.tree_reading import read  # start-up: only crawls with a browser need it

    html = await _evaluate(page, _READ, _EMPTY_CHARS)
    if not isinstance(html, str):
        return False
    body = html.encode("utf-8", "replace")
    if body.count(b"<") > HEAVY_TAGS:
        return False
    given = (body, "text/html; charset=utf-8", page.url, "", True)
    try:
        return reading.within(_READ_S, read, *given).browser == "empty_root"
    except reading.ParseTimeout:  # reading the whole page reports it
        return False


async def _scroll(page: Page, gate: Gate) -> None:
    height, view = await _evaluate(page, _HEIGHTS, None)
    for _ in range(_SCROLLS):
        if height <= view:
            return
        await _evaluate(page, _SCROLL, None)
        await _rest(page, gate)
        grown, view = await _evaluate(page, _HEIGHTS, None)
        if grown <= height:
            return
        height = grown


async def _evaluate(page: Page, script: str, argument: Any) -> Any:
    for left in range(_TRIES, 0, -1):
        try:
            return await page.evaluate(script, argument)
        except Exception as error:
            # The page was reloaded.
            if left == 1 or "context was destroyed" not in str(error):
                raise
            await asyncio.sleep(_AGAIN_S)
    return None


async def _picture(page: Page) -> bytes | None:
    try:
        async with asyncio.timeout(_SCREENSHOT_S):
            await page.evaluate("() => window.scrollTo(0, 0)")
            return await page.screenshot(animations="disabled", timeout=0)
    except Exception:
        return None  # the page matters more than its picture


async def _close_popup(page: Page) -> None:
    with suppress(Exception):
        await page.close()
