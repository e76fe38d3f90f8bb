"""Compiles the page scanner: `python tools/build_scanner.py`. Without a C compiler, pages are read from their trees.

The build hook (hatch_build.py) and the Makefile call it. The result uses the limited API of Python 3.11, so it works
with later versions too.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "curtsy" / "content" / "native" / "page_scan.c"
TARGET = ROOT / "src" / "curtsy" / "content" / "_page_scan.abi3.so"
#: oldest Python that the result works with
ABI = "cp311-abi3"
_LIMIT_S = 120


class NotBuilt(Exception):
    """There is no scanner; says why."""


def build(target: Path = TARGET, flags: tuple[str, ...] = ("-O2",)) -> Path:
    """Compile the scanner. NotBuilt if that is not possible; then there is no file, not even an older one."""
    made = target.with_suffix(f".{os.getpid()}.tmp")
    try:
        subprocess.run(
            [*_compiler(), *flags, f"-I{sysconfig.get_path('include')}", str(SOURCE), "-o", str(made)],
            check=True, capture_output=True, text=True, timeout=_LIMIT_S,
        )  # fmt: skip
        made.replace(target)
    except (OSError, subprocess.SubprocessError, NotBuilt) as error:
        target.unlink(missing_ok=True)
        output = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
        raise NotBuilt(output.strip() or str(error)) from error
    return target


def wheel_tag() -> str:
    """The tag of a wheel that contains the scanner."""
    return f"{ABI}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _compiler() -> list[str]:
    """The command that links an extension module, by the settings of this Python and the variable CC."""
    linker = shlex.split(sysconfig.get_config_var("LDSHARED") or "")
    if not linker or not SOURCE.exists():
        raise NotBuilt("This Python does not say how extension modules are built, or the source is missing.")
    own = shlex.split(os.environ.get("CC", ""))
    return [*(own or linker[:1]), *linker[1:], *shlex.split(sysconfig.get_config_var("CCSHARED") or "")]


def main() -> None:
    try:
        print(f"built {build().name}")
    except NotBuilt as error:
        print(f"not built: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
