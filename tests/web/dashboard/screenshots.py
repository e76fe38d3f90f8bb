"""`make screenshots`: every page, dark and light, on a desktop and on a phone, into a folder to be looked at."""

from __future__ import annotations

import logging
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from werkzeug.serving import make_server

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

from chromium import ARGUMENTS, find  # noqa: E402
from places import Furnished, furnish, places  # noqa: E402
from small_site import SmallSite  # noqa: E402
from stack import AnyPath, Stack, Web, up  # noqa: E402
from waiting import wait_for  # noqa: E402

from curtsy.core.settings_loading import load  # noqa: E402
from curtsy.store import keys  # noqa: E402
from curtsy.store.engine import Store  # noqa: E402
from curtsy.web import auth  # noqa: E402
from curtsy.web.factory import create_app  # noqa: E402

SIZES = {"desktop": (1280, 860), "phone": (390, 844)}
HOSTS = ("garden", "harbour", "orchard", "meadow", "lantern", "willow", "compass", "slow", "moody", "evil")


def shoot(browser: Browser, url: str, paths: dict[str, str], folder: Path) -> None:
    for size, (width, height) in SIZES.items():
        for theme in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if theme == "dark" else "light",
                device_scale_factor=1,
            )
            page = context.new_page()
            for name, path in paths.items():
                page.goto(url + path, wait_until="load")
                if name == "new":
                    page.fill("[name=seeds]", _SEEDS)
                    page.get_by_text("duplicate").first.wait_for()
                elif page.locator("[data-live][data-events]").count():
                    page.locator("[data-live-mark]:not([hidden])").first.wait_for()
                target = folder / f"{name}-{size}-{theme}.png"
                page.screenshot(path=target, full_page=True)
                wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                if wide > 0:
                    print(f"{target.name}: {wide} px wider than the screen")
            context.close()


_SEEDS = """http://garden.small.test/
http://harbour.small.test/
harbour.small.test/about
http://garden.small.test/
ftp://old.small.test/files
http://192.168.0.1/router"""


@contextmanager
def at_the_door(data: Path) -> Iterator[str]:
    """The same as others see it, who come from elsewhere."""
    app = create_app(load(data_dir=data / ".curtsy"), host="0.0.0.0")
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    app.extensions["curtsy"].close()


def for_the_docs(browser: Browser, stack: Stack, found: Furnished, folder: Path) -> None:
    """What README and docs/how-to/dashboard.md show: a crawl in the middle of its work, and a review."""
    id = stack.client.submit({"delay_s": 0.8, "scope": "any"}, [f"http://{host}.small.test/" for host in HOSTS])
    wait_for(lambda: stack.client.get(f"/v1/crawls/{id}")["counts"]["pages"] >= 180, 90)
    for name, path, theme in (("crawl", f"/crawls/{id}", "light"), ("review", f"/review/{found.doubtful}", "dark")):
        context = browser.new_context(
            viewport={"width": 1280, "height": 800}, color_scheme="dark" if theme == "dark" else "light"
        )
        page = context.new_page()
        page.goto(stack.url + path, wait_until="load")
        if name == "crawl":
            page.locator("[data-live-mark]:not([hidden])").first.wait_for()
        page.screenshot(path=folder / f"docs-{name}.png")
        context.close()


def make_key(stack: Stack) -> None:
    with Store.open(stack.store_url) as store:
        _, key = auth.new_key("Analysts, read only", ["read"], 1_790_000_000_000, None)
        store.run(keys.create, key)


def main(out: str) -> int:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    web = Web(pages=40)
    with (
        tempfile.TemporaryDirectory(prefix="curtsy-screenshots-") as data,
        SmallSite(AnyPath(web.answer)) as site,
        up(Path(data), site, flower_url="http://127.0.0.1:5555/") as stack,
        sync_playwright() as play,
    ):
        found: Furnished = furnish(stack, HOSTS, delay_s=0.15)
        make_key(stack)
        # One that is under way while the pictures are taken.
        going = [f"http://{host}.small.test/" for host in HOSTS[:7]]
        under_way = stack.client.submit({"delay_s": 4, "scope": "any"}, going)
        paths = places(found) | {"crawl-running": f"/crawls/{under_way}"}
        browser = play.chromium.launch(executable_path=find(), args=ARGUMENTS)
        shoot(browser, stack.url, paths, folder)
        with at_the_door(Path(data)) as url:
            shoot(browser, url, {"sign-in": "/"}, folder)
        stack.client.post(f"/v1/crawls/{under_way}/cancel")  # its delay holds for all crawls
        for_the_docs(browser, stack, found, folder)
        browser.close()
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "screenshots"))
