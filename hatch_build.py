"""Build hook: generates the typed HTTP client for wheels and editable installs (decision 41)."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ClientBuildHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        written = runpy.run_path(str(root / "tools" / "client_generator.py"))["write"]()
        # The files are in .gitignore, which hatchling obeys unless they are named here.
        build_data["artifacts"] += [str(path.relative_to(root)) for path in written]
