"""Traces and metrics for OpenTelemetry, off by default. otel_spans.py and otel_metrics.py need its packages.

Code that could be traced tests `tracing.active is not None` and does nothing else: without the setting `otel_endpoint`
no package of OpenTelemetry is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curtsy.core.errors import MissingPart
from curtsy.core.settings import Settings

if TYPE_CHECKING:
    from curtsy.core.otel_spans import Tracing

#: the traces of this process; None: they are off
active: Tracing | None = None


def begin(settings: Settings, part: str) -> None:
    """Trace this process if the settings ask for it. Call it after a fork: the exporter has a thread."""
    global active
    if settings.otel_endpoint is None or active is not None:
        return
    try:
        from curtsy.core.otel_spans import Tracing  # an extra
    except ModuleNotFoundError as error:
        raise MissingPart("otel_endpoint needs OpenTelemetry: pip install 'curtsy[otel]'.") from error
    active = Tracing(settings.otel_endpoint, settings.otel_sample, part)


def end() -> None:
    """Send what is left; the process is about to exit."""
    global active
    ending, active = active, None
    if ending is not None:
        ending.close()
