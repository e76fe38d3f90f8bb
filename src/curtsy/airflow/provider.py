"""The provider description for Airflow: the connection type with its form, the decorator, the link."""

from __future__ import annotations

from typing import Any

from curtsy import __version__

_MODULES = {"operators": "operator", "sensors": "sensor", "hooks": "hook", "triggers": "trigger"}


def info() -> dict[str, Any]:
    """The provider's description, found by the entry point `apache_airflow_provider`."""
    named: dict[str, Any] = {
        kind: [{"integration-name": "Curtsy", "python-modules": [f"curtsy.airflow.{module}"]}]
        for kind, module in _MODULES.items()
    }
    return named | {
        "package-name": "curtsy",
        "name": "Curtsy",
        "description": "Polite crawls without waiting workers",
        "versions": [__version__],
        "integrations": [{"integration-name": "Curtsy", "external-doc-url": "", "tags": ["service"]}],
        "task-decorators": [{"class-name": "curtsy.airflow.slots.polite_slot", "name": "polite_slot"}],
        "extra-links": ["curtsy.airflow.links.CurtsyCrawlLink"],
        "connection-types": [
            {
                "connection-type": "curtsy",
                "hook-class-name": "curtsy.airflow.hook.CurtsyHook",
                "hook-name": "Curtsy",
                "ui-field-behaviour": {
                    "hidden-fields": ["login"],
                    "relabeling": {"password": "API key", "schema": "Scheme"},
                    "placeholders": {"host": "crawler.example.com", "port": "8080", "schema": "http or https"},
                },
                "conn-fields": _FIELDS,
            }
        ],
    }


def _text(label: str, description: str, **more: Any) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"], **more}}


_FIELDS = {
    "dashboard_url": _text("Dashboard", "Address of the dashboard, if it differs from the API."),
    "frontier_url": _text(
        "Frontier", "For host slots: the Valkey or Redis of the fleet, redis://host:6379/0.", format="password"
    ),
    "store_url": _text("Store", "For host slots and exports: the PostgreSQL of the fleet.", format="password"),
    "segments_url": _text("Segments", "For exports of bodies: the s3://bucket/prefix of the fleet."),
    "data_dir": _text("Data folder", "Instead of the three fields above, if workers share a folder with `curtsy up`."),
    "settings": _text("Other settings", 'JSON, as in docs/reference/settings.md: {"delay_s": 2}.'),
}
