"""The browsers of a round, found by the folder that they keep their profiles in, whoever their parents are by now."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from curtsy.core.settings import Settings
from curtsy.fetch import chromium

#: a browser has so long to be at work before something is done to it
AT_WORK_S = 40.0
#: and so long to be gone when its crawl has ended, however that ended
GONE_S = 10.0


def missing() -> str | None:
    """Why no round can have a browser; None: it can."""
    return None if chromium.is_installed(Settings()) else "there is no Chromium, or no playwright, on this machine"


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--render", choices=("some", "all", "none"), default="some",
        help="which rounds have hosts that say nothing without their scripts, and a browser (some: one in three)",
    )  # fmt: skip


def chosen(render: str, numbers: Iterable[int], every: int) -> set[int]:
    """The rounds that have a browser; none where there is no browser, with a word."""
    wanted = {n for n in numbers if render == "all" or (render == "some" and n % every == 0)}
    if wanted and (why := missing()):
        print(f"No round has a browser: {why}.", flush=True)
        return set()
    return wanted


def home(folder: Path) -> Path:
    """TMPDIR of a round: what a browser is started with names it. Short, for the path of the browser's socket."""
    made = folder.parent.parent / f"chaos-{folder.name.rpartition('-')[2]}"
    made.mkdir(exist_ok=True)
    return made


def env(folder: Path) -> dict[str, str]:
    return {"TMPDIR": str(home(folder))}


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() if process.status() != psutil.STATUS_ZOMBIE else []
    except psutil.Error:
        return []


def processes(folder: Path) -> dict[int, list[str]]:
    """Every process of every browser of a round, with its command line; its watcher too."""
    mark = f"{home(folder)}/curtsy-chromium-"
    found = {process.pid: _words(process) for process in psutil.process_iter()}
    return {pid: words for pid, words in found.items() if any(mark in word for word in words)}


def watchers(folder: Path) -> list[int]:
    return [pid for pid, words in processes(folder).items() if any("chromium_watch" in word for word in words)]


def mains(folder: Path) -> list[int]:
    """The browsers themselves, whatever the program is called."""
    own = ("chromium_watch", "crashpad_handler", "--type=")
    return [
        pid
        for pid, words in processes(folder).items()
        if any(word.startswith("--user-data-dir=") for word in words)
        and not any(part in word for word in words for part in own)
    ]


def renderers(folder: Path) -> list[int]:
    return [pid for pid, words in processes(folder).items() if "--type=renderer" in words]


def at_work(folder: Path, rng: random.Random, goes_on: Callable[[], bool] = lambda: True) -> bool:
    """Waits until some browser shows a page, and a moment longer; False if none does, or the crawl has ended."""
    end = time.monotonic() + AT_WORK_S
    while time.monotonic() < end and goes_on():
        if renderers(folder):
            time.sleep(rng.uniform(0.0, 0.6))
            return True
        time.sleep(0.05)
    return False


def drivers(folder: Path) -> dict[int, list[str]]:
    """What Playwright starts beside a browser, to speak to it."""
    found = {}
    for process in psutil.process_iter():
        words = _words(process)
        try:
            if "run-driver" in words and process.environ().get("TMPDIR") == str(home(folder)):
                found[process.pid] = words
        except psutil.Error:
            continue  # it has ended
    return found


def left(folder: Path) -> list[str]:
    """What is there after all have ended, and does not go."""
    end = time.monotonic() + GONE_S
    while (found := processes(folder) | drivers(folder)) and time.monotonic() < end:
        time.sleep(0.1)
    return [f"left behind: {pid} {' '.join(words)[:150]}" for pid, words in found.items()]


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            psutil.Process(pid).send_signal(number)
        except psutil.Error:
            continue  # it has ended


def end_all(folder: Path) -> None:
    """Whatever happened, nothing of them is left."""
    while found := processes(folder) | drivers(folder):
        send(list(found), signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(home(folder), ignore_errors=True)
