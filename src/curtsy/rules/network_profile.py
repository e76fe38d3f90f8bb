"""By which way a crawl's requests go: the settings that decide it, as they are stored with the crawl.

On one machine every command has settings of its own, and all share the folder's queues. A crawl that was left, or that
another command runs, is not served by a process that would ask for its pages by another way: not through its proxy, or
at other addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMES = ("allow_private", "dns_servers", "proxies", "resolve")
#: setting -> its value; of what was withheld only that it was there
Ways = dict[str, Any]


def of(kept: Mapping[str, Any]) -> Ways:
    """Of what `configuration.keep` keeps."""
    given: Mapping[str, Any] = kept.get("settings") or {}
    found = {name: given[name] for name in _NAMES if given.get(name)}
    return found | {name: "withheld" for name in kept.get("withheld") or () if name in _NAMES}
