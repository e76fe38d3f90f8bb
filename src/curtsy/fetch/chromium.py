"""Chromium as a supervised process: found, started with our command line, stopped with everything it started.

The browser has no network access: it resolves no names, its proxy is a port that refuses connections, and where the
kernel supports it, none of its processes can connect at all. Its pages get their resources over the debugging
connection (browser_requests.py).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from curtsy.core.errors import MissingPart, Unavailable
from curtsy.core.observe import log
from curtsy.core.settings import Settings

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_WATCH = Path(__file__).with_name("chromium_watchdog.py")
_START_TIMEOUT_S = 30.0
_GONE_TIMEOUT_S = 10.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TOLD_BYTES = 4096
#: the longest path of a Unix socket, and the part that the browser appends to its profile folder
_SOCKET_BYTES, _OWN_SOCKET = 107, "/org.chromium.Chromium.XXXXXX/SingletonSocket"
_PREFIX = "curtsy-chromium-"
#: heap limit of a page: beyond it the page's process ends
_HEAP_MB = 512

#: features for interactive users, and those that use the network on their own. The popups of the address bar are extra
#: pages in every window, which even a headless browser opens for every visit: they cost more than most visits.
_FEATURES_OFF = (
    "AcceptCHFrame,AutofillServerCommunication,CertificateTransparencyComponentUpdater,DestroyProfileOnBrowserClose,"
    "DialMediaRouteProvider,GlobalMediaControls,HttpsFirstBalancedModeAutoEnable,HttpsUpgrades,"
    "InterestFeedContentSuggestions,LensOverlay,MediaRouter,OptimizationHints,PaintHolding,"
    "PreconnectToSearch,Prerender2,SegmentationPlatform,SpareRendererForSitePerProcess,Translate,"
    "WebRtcHideLocalIpsWithMdns,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,WebUIOmniboxPopup"
)
_OPTIONS = (
    "--headless",
    "--no-startup-window",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--mute-audio",
    "--hide-scrollbars",
    "--metrics-recording-only",
    "--password-store=basic",
    "--block-new-web-contents",
    "--deny-permission-prompts",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-hang-monitor",
    "--disable-notifications",
    "--disable-quic",
    "--disable-renderer-backgrounding",
    "--disable-search-engine-choice-screen",
    "--disable-speech-api",
    "--disable-sync",
    "--disk-cache-size=1",
    "--blink-settings=imagesEnabled=false",
    f"--disable-features={_FEATURES_OFF}",
    f"--js-flags=--max-old-space-size={_HEAP_MB}",
    # No request reaches the network.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-bypass-list=<-loopback>",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)


def find(settings: Settings) -> str:
    """The browser's program."""
    for name in (settings.chromium,) if settings.chromium is not None else PROGRAMS:
        if (path := shutil.which(name)) is not None:
            return path
    wanted = "Chromium is not on PATH"
    if settings.chromium is not None:
        wanted = f"The setting chromium names no program: {settings.chromium!r}"
    raise MissingPart(f"{wanted}. Install Chromium (apt install chromium), or set `chromium` to its path.")


def check_installed(settings: Settings) -> str:
    """The browser's program. Raises MissingPart if it or the renderer's package is not installed."""
    package = "crawl4ai" if settings.renderer == "crawl4ai" else "playwright"
    if find_spec(package) is None:
        extra = "crawl4ai" if package == "crawl4ai" else "browser"
        raise MissingPart(f"Rendering pages needs {package}: pip install 'curtsy[{extra}]'.")
    return find(settings)


def is_installed(settings: Settings) -> bool:
    try:
        check_installed(settings)
    except MissingPart:
        return False
    return True


def command_line(program: str, profile: str, refusing_port: int) -> list[str]:
    line = [program, *_OPTIONS, f"--proxy-server=http://127.0.0.1:{refusing_port}", f"--user-data-dir={profile}"]
    if os.geteuid() == 0:
        line.append("--no-sandbox")  # with the sandbox, Chromium refuses to run as root
    return line


class Chromium:
    """One running browser."""

    def __init__(
        self, watch: subprocess.Popen[bytes], outages: int, refusing: socket.socket, profile: Path, said: IO[bytes]
    ) -> None:
        self._watch = watch
        self._said = said
        self._outages: int | None = outages
        self._refusing = refusing
        self._profile = profile
        #: the URL of its DevTools protocol
        self.endpoint = ""
        #: the kernel prevents its processes from connecting
        self.sealed = False

    @classmethod
    async def start(cls, settings: Settings, within_s: float = _START_TIMEOUT_S) -> Chromium:
        browser = cls._launch(find(settings))
        deadline = time.monotonic() + within_s
        try:
            while not browser._is_up():
                if not browser.alive:
                    raise Unavailable(f"Chromium does not start: {browser.complaint() or 'it ended at once'}")
                if time.monotonic() > deadline:
                    raise Unavailable(f"Chromium did not start within {within_s:.0f} s.")
                await asyncio.sleep(0.02)
        except BaseException:
            browser.kill()
            await browser.gone()
            raise
        log("browser_started", pid=browser._watch.pid, sealed=browser.sealed)
        return browser

    @classmethod
    def _launch(cls, program: str) -> Chromium:
        profile = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_where(tempfile.gettempdir())))
        # Bound and never listening: the port is reserved, and refuses connections.
        refusing = socket.socket()
        refusing.bind(("127.0.0.1", 0))
        theirs, ours = os.pipe()
        command = command_line(program, str(profile), refusing.getsockname()[1])
        try:
            said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the browser
            with (profile / "stdout").open("wb") as out:
                watch = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_WATCH), str(theirs), str(profile), *command],
                    stdin=subprocess.DEVNULL, stdout=out, stderr=said, pass_fds=(theirs,), start_new_session=True,
                    cwd="/", env=_environment(profile),
                )  # fmt: skip
        except BaseException:
            os.close(ours)
            refusing.close()
            shutil.rmtree(profile, ignore_errors=True)
            raise
        finally:
            os.close(theirs)
        return cls(watch, ours, refusing, profile, said)

    @property
    def alive(self) -> bool:
        return self._outages is not None and self._watch.poll() is None

    @property
    def pids(self) -> list[int]:
        """Its processes, the watchdog first."""
        return [self._watch.pid, *_descendants(self._watch.pid)]

    def memory_mb(self) -> float:
        """Private memory of its processes; shared memory is not counted."""
        return sum(_private_bytes(pid) for pid in self.pids) / 1e6

    def complaint(self) -> str:
        """The last relevant line of its output; its crash reporter writes something at every end."""
        if self._said.closed:
            return ""
        length = os.fstat(self._said.fileno()).st_size
        lines = os.pread(self._said.fileno(), _TOLD_BYTES, max(0, length - _TOLD_BYTES)).decode("utf-8", "replace")
        said = lines.strip().splitlines()
        return ([line for line in said if "crashpad" not in line] or said or [""])[-1][:500]

    def kill(self) -> None:
        """Ends it and everything it started, now."""
        if self._outages is not None:
            os.close(self._outages)
            self._outages = None
            self._refusing.close()
            self._said.close()

    async def gone(self, within_s: float = _GONE_TIMEOUT_S) -> bool:
        """After `kill`: waits until none of its processes is left."""
        deadline = time.monotonic() + within_s
        while self._watch.poll() is None:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True

    def _is_up(self) -> bool:
        try:
            port, path = (self._profile / "DevToolsActivePort").read_text().split()
        except (OSError, ValueError):
            return False
        self.endpoint = f"ws://127.0.0.1:{port}{path}"
        self.sealed = (self._profile / "stdout").read_bytes().startswith(b"sealed")
        return True


def _where(folder: str) -> str:
    """The folder for profiles: the temporary folder, unless the browser's socket would have too long a path there."""
    longest = len(os.fsencode(folder)) + len(f"/{_PREFIX}XXXXXXXX{_OWN_SOCKET}")
    return folder if longest <= _SOCKET_BYTES or not os.access("/tmp", os.W_OK) else "/tmp"


def _environment(profile: Path) -> dict[str, str]:
    """The browser's environment: its own home, no proxies, no session bus, none of our secrets."""
    kept = {
        name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ") if name in os.environ
    }
    return {**kept, "HOME": str(profile), "TMPDIR": str(profile), "DBUS_SESSION_BUS_ADDRESS": "disabled:"}


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path("/proc", name, "stat").read_bytes()
        except OSError:
            continue
        children[int(stat.rpartition(b")")[2].split()[1])].append(int(name))
    found = [pid]
    for parent in found:
        found += children.get(parent, ())
    return found[1:]


def _private_bytes(pid: int) -> int:
    try:
        fields = Path("/proc", str(pid), "statm").read_bytes().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * _PAGE_BYTES if len(fields) > 2 else 0
