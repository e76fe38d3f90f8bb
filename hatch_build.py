"""Build hook: generates the typed HTTP client (decision 41) and compiles the page scanner (decision 110)."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ClientBuildHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        tools = Path(self.root) / "tools"
        # The files are in .gitignore, which hatchling obeys unless they are named here.
        self._add(build_data, runpy.run_path(str(tools / "client_generator.py"))["write"]())
        if self.target_name == "wheel":
            self._compile(build_data, runpy.run_path(str(tools / "build_scanner.py")))

    def _compile(self, build_data: dict[str, Any], scanner: dict[str, Any]) -> None:
        try:
            made = scanner["build"]()
        except scanner["NotBuilt"] as error:
            self.app.display_warning(f"Pages are read without the compiled scanner: {error}")
            return
        self._add(build_data, [made])
        build_data["pure_python"] = False
        build_data["tag"] = scanner["wheel_tag"]()

    def _add(self, build_data: dict[str, Any], written: list[Path]) -> None:
        build_data["artifacts"] += [str(path.relative_to(self.root)) for path in written]
