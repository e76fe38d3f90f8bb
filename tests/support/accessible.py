"""axe over a page as people may have it: light or dark, on a desktop or a phone."""

from __future__ import annotations

from typing import Any, Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

#: (theme, width, height), each a small step from the one before
WAYS: tuple[tuple[Literal["light", "dark"], int, int], ...] = (
    ("light", 1280, 900),
    ("dark", 1280, 900),
    ("dark", 390, 844),
    ("light", 390, 844),
)
_RUN = "() => axe.run({resultTypes: ['violations']}).then(found => found.violations)"


def faults(page: Page, name: str) -> list[str]:
    """What is wider than the screen in any way, and serious violations in two: half of the pages have the other two."""
    found: list[str] = []
    page.evaluate(AXE_SCRIPT)
    for number, (theme, width, height) in enumerate(WAYS):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": height})
        if (number + len(name)) % 2:
            found += [f"{name} {theme} {width}: {said}" for said in _violations(page)]
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            found.append(f"{name} is {wide} px wider than a screen of {width}")
    return found


def _violations(page: Page) -> list[str]:
    wrong: list[dict[str, Any]] = page.evaluate(_RUN)
    found = []
    for one in wrong:
        if one["impact"] in ("serious", "critical"):
            targets = [f"{node['target']} {node['failureSummary']}" for node in one["nodes"][:3]]
            found.append(f"{one['id']} {targets}")
    return found
