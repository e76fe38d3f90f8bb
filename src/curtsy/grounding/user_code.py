"""Import of a user's module for `module:name`, such as a Pydantic model or a scoring function."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from curtsy.core.errors import UsageError

SPEC = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def imported(spec: str, folder: Path, kind: str) -> tuple[ModuleType, Any]:
    """Return the module of `module:name` and its attribute, or None; the module is also searched in `folder`."""
    module_name, _, name = spec.partition(":")
    where = str(folder.resolve())
    sys.path.insert(0, where)
    try:
        module = importlib.import_module(module_name)
    except SystemExit as error:
        raise UsageError(f"the {kind} {spec}: {module_name} cannot be imported: it exits the process") from error
    except Exception as error:  # anything that a user's module may raise
        raise UsageError(f"the {kind} {spec}: {module_name} cannot be imported: {error}") from error
    finally:
        if where in sys.path:
            sys.path.remove(where)
    return module, getattr(module, name, None)
