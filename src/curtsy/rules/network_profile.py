"""The network settings of a crawl (proxies, DNS, allowed addresses), as they are stored with it.

The commands of one machine share the queues of a data folder, but each has its own settings. A process does not serve a
crawl whose network settings differ from its own: it would not use the crawl's proxy, or would connect to other
addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMES = ("allow_private", "dns_servers", "proxies", "proxy_dns", "resolve")
#: setting -> its value, or `withheld` if the value may be a secret
NetworkProfile = dict[str, Any]


def of(kept: Mapping[str, Any]) -> NetworkProfile:
    """The profile in the settings that `settings_loading.keep` stored."""
    given: Mapping[str, Any] = kept.get("settings") or {}
    found = {name: given[name] for name in _NAMES if given.get(name)}
    return found | {name: "withheld" for name in kept.get("withheld") or () if name in _NAMES}
