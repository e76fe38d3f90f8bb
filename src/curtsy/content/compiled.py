"""Which modules mypyc compiles where it can (`tools/build_modules.py`), and whether it compiled these sources.

The sources are the reference. After a change, they run as they are until they are compiled again: the digest of what
was compiled is stored beside it. See docs/decisions/0184-compiled-modules.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from hashlib import blake2b
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parent
_PACKAGE = __name__.rpartition(".")[0]
#: all of them together, because they use each other's classes
MODULES = (
    "walk", "tables", "text", "markdown", "main_content.outline", "main_content.title", "main_content.groups",
    "main_content.posts", "main_content.page_type", "main_content.frame", "main_content.root", "main_content.pruning",
)  # fmt: skip
DIGEST_FILE = "_compiled.digest"


def digest(folder: Path = _FOLDER) -> str:
    """Return the digest of the sources."""
    found = blake2b(digest_size=16)
    for module in MODULES:
        found.update(source_of(module, folder).read_bytes())
    return found.hexdigest()


def source_of(module: str, folder: Path = _FOLDER) -> Path:
    return folder / f"{module.replace('.', '/')}.py"


def is_in_use() -> bool:
    """Return whether pages are read with compiled modules."""
    walk = sys.modules.get(f"{_PACKAGE}.walk")
    file = None if walk is None else walk.__file__
    return file is not None and file.endswith(tuple(EXTENSION_SUFFIXES))


class _Sources:
    """Finds the sources of the modules, not what was compiled."""

    @staticmethod
    def find_spec(
        name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        module = name.removeprefix(f"{_PACKAGE}.")
        return spec_from_file_location(name, source_of(module)) if module != name and module in MODULES else None


def choose() -> None:
    """Take the sources if what was compiled is of others, or if `CURTSY_COMPILED=0`."""
    try:
        made = (_FOLDER / DIGEST_FILE).read_text("ascii")
    except OSError:
        return
    if made != digest() or os.environ.get("CURTSY_COMPILED") == "0":
        sys.meta_path.insert(0, _Sources())
