"""Whether the service lives, and whether it can work."""

from __future__ import annotations

from curtsy import __version__
from curtsy.web.models.health import Alive
from curtsy.web.routing import Call, endpoint


@endpoint("GET", "/healthz", scope=None, answers={200: Alive}, tags=("health",))
def healthz(call: Call) -> Alive:
    """Whether the process lives. It asks no other part."""
    return Alive(version=__version__)
