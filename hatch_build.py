"""Build hook: generates the typed HTTP client (decision 41), compiles the page scanner and modules (110, 184)."""

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
            self._compile_scanner(build_data, runpy.run_path(str(tools / "build_scanner.py")))
            if version != "editable":  # where sources change, and installing is done often
                self._compile_modules(build_data, runpy.run_path(str(tools / "build_modules.py")))

    def _compile_scanner(self, build_data: dict[str, Any], scanner: dict[str, Any]) -> None:
        try:
            made = scanner["build"]()
        except scanner["NotBuilt"] as error:
            self.app.display_warning(f"Pages are read without the compiled scanner: {error}")
            return
        self._add(build_data, [made])
        build_data["pure_python"] = False
        build_data["tag"] = scanner["wheel_tag"]()

    def _compile_modules(self, build_data: dict[str, Any], modules: dict[str, Any]) -> None:
        try:
            made = modules["build"]()
        except modules["NotBuilt"] as error:
            self.app.display_warning(f"Pages are read without compiled modules: {error}")
            return
        src = Path(self.root) / "src"
        self._add(build_data, [path for path in made if path.parent != src])
        build_data["force_include"] |= {str(path): path.name for path in made if path.parent == src}
        # They work with this version of Python only.
        build_data |= {"pure_python": False, "infer_tag": True}
        build_data.pop("tag", None)

    def _add(self, build_data: dict[str, Any], written: list[Path]) -> None:
        build_data["artifacts"] += [str(path.relative_to(self.root)) for path in written]
