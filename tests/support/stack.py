"""A whole stack for the browser: a tiny web of its own, `curtsy up` with workers, Beat, API and dashboard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from small_site import Answer, Asked, Say, SmallSite
from waiting import wait_for

from curtsy.client.http import Client

T = TypeVar("T")

#: everything short, so that a host that fails is a dead letter soon
SETTINGS: dict[str, Any] = {
    "delay_s": 0.2,
    "fetch_timeout_s": 2,
    "connect_timeout_s": 1,
    "start_slack_s": 1,
    "slot_margin_s": 0.5,
    "slot_s": 4,
    "url_lease_s": 4,
    "heartbeat_s": 1,
    "host_patience_s": 3,
    "backoff_s": 0.2,
    "backoff_cap_s": 0.5,
    "max_attempts": 2,
    "drain_s": 0.2,
    "latency_factor": 0,
    "api_rate": 10000,
    "api_burst": 100000,
    "log_level": "info",
    "log_format": "json",
}


class Stack:
    """One `curtsy up` in a folder."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, folder: Path) -> None:
        self.process, self.url, self.folder = process, url, folder
        self.client = Client(url)

    def until(self, id: str, *states: str, within_s: float = 90) -> dict[str, Any]:
        """The crawl, as soon as it is in one of these states."""

        def look() -> dict[str, Any] | None:
            found = self.client.get(f"/v1/crawls/{id}")
            return found if found["state"] in states else None

        return wait_for(look, within_s)

    @property
    def store_url(self) -> str:
        return f"sqlite:///{self.folder / '.curtsy' / 'curtsy.sqlite'}"


@contextmanager
def up(folder: Path, site: SmallSite, **changes: Any) -> Iterator[Stack]:
    folder.mkdir(parents=True, exist_ok=True)
    given = {**SETTINGS, "resolve": [site.resolve_rule], **changes}
    config = folder / "curtsy.toml"
    config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items()))
    words = ["up", "--port", "0", "--workers", "1", "--processes", "1", "--json", "--config", str(config)]
    words += ["--data-dir", str(folder / ".curtsy")]
    with (folder / "up.log").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "curtsy", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield Stack(process, _told(process, folder)["api"], folder)
    finally:
        process.send_signal(signal.SIGTERM)
        if process.stdout is not None:
            process.stdout.close()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _told(process: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != "}\n":
        line = process.stdout.readline().decode()
        assert line, (folder / "up.log").read_text("utf-8")
        lines.append(line)
    found: dict[str, Any] = json.loads("".join(lines))
    return found


# The web that it crawls

_ROBOTS = b"""# Be gentle, please.
User-agent: *
Disallow: /private/
Disallow: /search
Allow: /private/press/
Crawl-delay: 0.3

Sitemap: http://garden.small.test/sitemap.xml
"""
_WORDS = (
    "Meadow", "Orchard", "Harbour", "Lantern", "Willow", "Granite", "Compass", "Saffron", "Juniper", "Cobalt", "Ember",
    "Thistle",
)  # fmt: skip

#: what a page that means no good would do if anything of it ran
EVIL = "window.__evil = (window.__evil || 0) + 1"
HOSTILE_TITLE = f"</title></bdi></a><script>{EVIL}</script><img src=x onerror='{EVIL}'>\u202etxt.exe\u2066" + "W" * 5000
HOSTILE = (
    "<!doctype html><html lang='\"><script>" + EVIL + "</script>'><head>"
    "<title>&lt;/title&gt;&lt;/bdi&gt;&lt;/a&gt;&lt;script&gt;" + EVIL + "&lt;/script&gt;&lt;img src=x onerror='"
    + EVIL + "'&gt;\u202etxt.exe\u2066" + "W" * 5000 + "</title>"
    f"<link rel=canonical href='javascript:{EVIL}'></head><body onload='{EVIL}'>"
    f"<h1>&lt;script&gt;{EVIL}&lt;/script&gt;</h1><p>\u202eabc &lt;img src=x onerror={EVIL}&gt;</p>"
    f"<p>Our mission is to run &lt;script&gt;{EVIL}&lt;/script&gt; in every reader of our pages.</p>"
    f"<a href='javascript:{EVIL}'>click</a>"
    f"<a href='/x?q=%3Cscript%3E{EVIL.replace(' ', '%20')}%3C/script%3E'>link</a>"
    f"<a href='/fail/\"><script>{EVIL}</script>'>broken</a>"
    f"<svg onload='{EVIL}'></svg><iframe srcdoc='<script>parent.{EVIL}</script>'></iframe>"
    f"<script>{EVIL}</script></body></html>"
)  # fmt: skip


class Web:
    """`garden.small.test` has 12 rooms of pages, `slow.` takes its time, `moody.` fails until it is told to be good."""

    def __init__(self, pages: int = 30, slow_s: float = 0.05) -> None:
        self.pages, self.slow_s = pages, slow_s
        self.good = False

    def answer(self, asked: Asked) -> Say:
        host = asked.host.partition(":")[0].partition(".")[0]
        if asked.path == "/robots.txt":
            return Say(_ROBOTS, headers=(("Content-Type", "text/plain"),)) if host == "garden" else Say(b"", 404)
        if host == "moody" and not self.good:
            return Say(b"<title>Not now</title>", 500 if asked.path != "/no" else 403)
        if host == "slow":
            time.sleep(self.slow_s)
        if host == "evil":
            return self._evil(asked)
        if asked.path == "/about":
            return _about(host)
        return self._page(host, asked.path)

    def _page(self, host: str, path: str) -> Say:
        number = int(path[6:]) if path.startswith("/page/") and path[6:].isdigit() else 0
        if path != "/" and not 0 < number < self.pages:
            return Say(b"<title>Not found</title>", 404)
        links = [f"/page/{n}" for n in range(number * 3 + 1, number * 3 + 4) if n < self.pages]
        links += ["/private/diary", "/private/press/kit", "/about"] if path == "/" else []
        word = _WORDS[number % len(_WORDS)] if number else f"{host.title()} Works"
        body = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
        text = f"<p>The {word} room of {host} has {number + 3} windows. It was built in {1900 + number}.</p>" * 6
        name = f'<meta property="og:site_name" content="{host.title()} Works">'
        title = f"{word} {number}" if number else word
        return Say(
            f"<!doctype html><html lang=en>{name}<title>{title}</title><h1>{word}</h1>{text}<ul>{body}</ul>".encode()
        )

    def _evil(self, asked: Asked) -> Say:
        if asked.path.startswith("/fail"):
            return Say(b"no", 403)
        headers = (("Content-Type", "text/html; charset=utf-8"), ("X-Evil", f"<script>{EVIL}</script>"))
        return Say(HOSTILE.encode(), headers=headers)


def _about(host: str) -> Say:
    return Say(
        (
            f"<!doctype html><html lang=en><title>About {host.title()}</title><h1>About {host.title()}</h1>"
            f"<p>{host.title()} Works was founded in 1987 and has its seat in 12 Mill Lane, Lindau. Our mission is to "
            "grow food without poison, for everybody. We cut our emissions by 42 percent between 2015 and 2023.</p>"
            f"<p>Write to hello@{host}.small.test or call +49 8382 123456.</p>"
        ).encode()
    )


class AnyPath(dict[str, Answer]):
    """Every path is answered by one function."""

    def __init__(self, answer: Callable[[Asked], Say]) -> None:
        super().__init__()
        self._answer = answer

    def get(self, _key: object, _default: object = None) -> Any:
        return self._answer
