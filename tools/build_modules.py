"""Compiles the modules that read pages (`curtsy/content/compiled.py`) with mypyc: `python tools/build_modules.py`.

Without mypyc or a C compiler, the modules run as they are. The build hook (hatch_build.py) and the Makefile call it.
"""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

SRC = Path(__file__).parent.parent / "src"
#: of the library that all compiled modules share, at the top of the installation
GROUP = "curtsy_content"
_LIMIT_S = 600
_SCRIPT = """
import sys
from mypyc.build import mypycify
from setuptools import setup
made, group, *paths = sys.argv[1:]
options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent", f"--cache-dir={made}/cache"]
extensions = mypycify([*options, *paths], opt_level="2", debug_level="0", target_dir=f"{made}/c", group_name=group)
places = ["--build-lib", f"{made}/lib", "--build-temp", f"{made}/o"]
setup(name="curtsy", packages=[], ext_modules=extensions, script_args=["-q", "build_ext", *places])
"""


class NotBuilt(Exception):
    """There are no compiled modules; says why."""


def build(src: Path = SRC) -> list[Path]:
    """Compile the modules; return the files. NotBuilt if that is not possible; then there are not even older ones."""
    content = src / "curtsy" / "content"
    if not (content / "compiled.py").exists():
        raise NotBuilt("The sources are missing.")
    compiled = runpy.run_path(str(content / "compiled.py"))
    paths = [str(compiled["source_of"](module, content).relative_to(src)) for module in compiled["MODULES"]]
    remove(src)
    with tempfile.TemporaryDirectory(prefix="curtsy-build-") as folder:
        try:
            subprocess.run(
                [sys.executable, "-c", _SCRIPT, folder, GROUP, *paths],
                cwd=src, check=True, capture_output=True, text=True, timeout=_LIMIT_S,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            output = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
            raise NotBuilt(output.strip() or str(error)) from error
        made = [path.relative_to(f"{folder}/lib") for path in Path(folder, "lib").rglob("*.so")]
        for path in made:
            shutil.move(Path(folder, "lib", path), src / path)
    stamp = content / compiled["DIGEST_FILE"]
    stamp.write_text(compiled["digest"](content), "ascii")
    return [*(src / path for path in made), stamp]


def remove(src: Path = SRC) -> None:
    """Delete what was compiled before."""
    content = src / "curtsy" / "content"
    compiled = runpy.run_path(str(content / "compiled.py"))
    (content / compiled["DIGEST_FILE"]).unlink(missing_ok=True)
    for path in src.glob(f"{GROUP}__mypyc.*.so"):
        path.unlink()
    for module in compiled["MODULES"]:
        source = compiled["source_of"](module, content)
        for path in source.parent.glob(f"{source.stem}.*.so"):
            path.unlink()


def is_current(src: Path = SRC) -> bool:
    """Return whether the modules are compiled from the present sources, for this version of Python."""
    content = src / "curtsy" / "content"
    compiled = runpy.run_path(str(content / "compiled.py"))
    stamp = content / compiled["DIGEST_FILE"]
    if not stamp.exists() or stamp.read_text("ascii") != compiled["digest"](content):
        return False
    return any(src.glob(f"{GROUP}__mypyc*{sysconfig.get_config_var('EXT_SUFFIX')}"))


def main() -> None:
    if is_current():
        return
    try:
        print(f"built {len(build())} files")
    except NotBuilt as error:
        print(f"not built: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
