"""One visit of one page: shown in a context of its own, waited for until it rests, read, and left again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curtsy.fetch.gate import Gate
from curtsy.fetch.transfer import boot_clock

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

#: nothing asked and nothing changed for so long: the page rests
_QUIET_S = 0.4
#: a page that never rests is read after this time
_RESTLESS_S = 15.0
#: a page that grows when its end is reached is followed so often
_SCROLLS = 4
_SCREENSHOT_S = 5.0
#: a navigation of the page to itself takes what is being evaluated with it
_TRIES = 10
_AGAIN_S = 0.1

#: Resolves when the document was read and did not change for so many milliseconds. Attributes are not watched: they
#: change for ever in animations.
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
#: Goes down the page in steps, so that what loads when it is seen is seen; tells the page's height.
_SCROLL = """async () => {
  const view = window.innerHeight, height = () => document.documentElement.scrollHeight;
  for (let step = 0; step < 30 && window.scrollY + view < height(); step += 1) {
    window.scrollBy(0, view);
    await new Promise((done) => setTimeout(done, 30));
  }
  return height();
}"""
_HEIGHTS = "() => [document.documentElement.scrollHeight, window.innerHeight]"
#: The document, or its length where that is over the limit.
_READ = """(most) => {
  const type = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + "\\n" : "";
  const html = type + (document.documentElement ? document.documentElement.outerHTML : "");
  return html.length > most ? html.length : html;
}"""


class Hung(Exception):
    """The page, or the browser with it, does not answer."""


class Crashed(Exception):
    """The page's process, or the browser, ended."""


class TooLarge(Exception):
    """The document is over the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a visit saw."""

    html: bytes
    screenshot: bytes | None = None
    markdown: str | None = None


#: shows a page and reads it
See = Callable[["Page"], Coroutine[Any, Any, Sight]]


async def new_context(browser: Browser, user_agent: str) -> BrowserContext:
    return await browser.new_context(
        user_agent=user_agent,
        accept_downloads=False,
        service_workers="block",
        viewport={"width": 1280, "height": 1024},
        locale="en-US",
        reduced_motion="reduce",
    )


async def look(context: BrowserContext, gate: Gate, see: See, *, until: float) -> Sight:
    """Open a page behind the gate and let `see` show and read it; `until`: boot clock.

    Opening it is waited for no longer than anything else: a browser that dies or hangs meanwhile gives no answer.
    """
    crashed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def crash(what: str) -> None:
        if not crashed.done():
            crashed.set_result(what)

    def gone(_: Any) -> None:
        crash("the browser ended")

    async def opened() -> Sight:
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
        crashed.cancel()
        if browser is not None:
            browser.remove_listener("disconnected", gone)


async def see_plainly(page: Page, gate: Gate, url: str, max_bytes: int, screenshot: bool) -> Sight:
    await page.goto(url, wait_until="commit", timeout=0)
    await come_to_rest(page, gate)
    html = await read(page, max_bytes)
    picture = await _picture(page) if screenshot else None
    return Sight(html=html, screenshot=picture)


async def come_to_rest(page: Page, gate: Gate) -> None:
    """Until the page rests, has been seen to its end, and rests again; or until that took too long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_RESTLESS_S):
            await _rest(page, gate)
            await _scroll(page, gate)


async def read(page: Page, max_bytes: int) -> bytes:
    if page.url.startswith("chrome-error:"):
        raise Crashed("the browser shows a page of its own instead")
    found = await _evaluate(page, _READ, max_bytes)
    html = b"" if isinstance(found, int) else found.encode("utf-8", "replace")
    if isinstance(found, int) or len(html) > max_bytes:
        raise TooLarge(f"the document is over {max_bytes} bytes")
    return html


async def _rest(page: Page, gate: Gate) -> None:
    """Nothing is asked, and nothing changes."""
    while True:
        await _evaluate(page, _AT_REST, int(_QUIET_S * 1000))
        if (quiet_s := gate.quiet_s) >= _QUIET_S:
            return
        await asyncio.sleep(_QUIET_S - quiet_s)


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
            # The page has begun again from its own start.
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
