"""Source archives of Debian packages, downloaded with `apt-get source`; the settings of the machine do not change."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_SOURCES = Path("/etc/apt")
_LINE = re.compile(r"^deb ", re.MULTILINE)
_TYPES = re.compile(r"^Types: deb$", re.MULTILINE)


def download(package: str, folder: Path) -> None:
    """Store the archives of a package in the folder. Nothing is stored if the machine has no `apt-get`."""
    parts = folder / "sources"
    for name in ("sources", "lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for path in (_SOURCES / "sources.list", *_SOURCES.glob("sources.list.d/*")):
        if path.is_file():
            text = _TYPES.sub("Types: deb-src", _LINE.sub("deb-src ", path.read_text("utf-8")))
            (parts / path.name).write_text(text, "utf-8")
    options = {
        "Dir::Etc::SourceList": "/dev/null", "Dir::Etc::SourceParts": parts, "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder,
    }  # fmt: skip
    given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    for command in (["update"], ["source", "--download-only", package]):
        try:
            subprocess.run(["apt-get", "-qq", *given, *command], cwd=folder, capture_output=True, check=False)
        except FileNotFoundError:
            return
