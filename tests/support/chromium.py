"""The browser of these tests: the one that `curtsy doctor` finds."""

from __future__ import annotations

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")
#: as root there is no sandbox to be had; nothing but our own pages is opened
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    # pages of the address bar, which cost more than ours
    "--disable-features=WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,WebUIOmniboxPopup",
]


def find() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)
