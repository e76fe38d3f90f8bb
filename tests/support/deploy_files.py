"""Checks of commands and settings that files under deploy/ name."""

from __future__ import annotations

from curtsy.cli.app import app
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import NO_SETTINGS
from curtsy.fleet.celery_app import QUEUES


def check_command(words: list[str]) -> None:
    """It would be understood: a command that exists, with options that it has."""
    command = app.commands[words[0]].load()  # type: ignore[attr-defined]
    command.make_context(words[0], words[1:])
    if "--queues" in words:
        queues = words[words.index("--queues") + 1]
        assert queues == "%i" or set(queues.split(",")) <= set(QUEUES)


def check_setting(name: str) -> None:
    if name.startswith("CURTSY_") and name not in NO_SETTINGS:
        assert name.removeprefix("CURTSY_").lower() in Settings.model_fields, name
