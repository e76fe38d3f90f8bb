"""The modules that mypyc compiles say what their sources say, and only as long as they are of these sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import build_modules
import pytest

import curtsy
from curtsy.content import compiled

GOLDEN = Path(__file__).parent.parent / "golden" / "main_content"
READ = """
import sys
from pathlib import Path
from curtsy.content import compiled
from curtsy.content.document import Document
print(compiled.is_in_use())
for path in sorted(Path(sys.argv[1]).glob("*.html")):
    page = Document.parse(path.read_bytes(), "text/html", "https://a.test/dir/page")
    print(path.name, page.page_type(), page.main_text(), page.main_markdown(), page.markdown(), page.text(), sep="\\n")
"""


@pytest.fixture(scope="module")
def src(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources as they are now, with compiled modules."""
    copy = tmp_path_factory.mktemp("compiled") / "src"
    shutil.copytree(Path(curtsy.__file__).parent, copy / "curtsy", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    try:
        build_modules.build(copy)
    except build_modules.NotBuilt as error:
        pytest.skip(f"no mypyc or no C compiler: {error}")
    return copy


def read(src: Path, **variables: str) -> tuple[str, str]:
    """Whether compiled modules were in use, and what was read from the golden pages."""
    env = {key: value for key, value in os.environ.items() if key != "CURTSY_COMPILED"} | variables
    argv = [sys.executable, "-c", READ, str(GOLDEN)]
    said = subprocess.run(argv, env=env | {"PYTHONPATH": str(src)}, capture_output=True, text=True, check=True).stdout
    in_use, _, rest = said.partition("\n")
    return in_use, rest


def test_compiled_modules_say_what_their_sources_say(src: Path) -> None:
    in_use, found = read(src)
    assert in_use == "True"
    assert read(src, CURTSY_COMPILED="0") == ("False", found)
    assert found.count("\n") > 1_000


def test_changed_sources_run_as_they_are_until_they_are_compiled_again(src: Path) -> None:
    source = compiled.source_of("walk", src / "curtsy" / "content")
    before = source.read_text()
    source.write_text(before + "\n# changed\n")
    try:
        assert read(src)[0] == "False"
    finally:
        source.write_text(before)
    assert read(src)[0] == "True"


def test_a_build_that_fails_leaves_no_compiled_modules(tmp_path: Path) -> None:
    content = tmp_path / "curtsy" / "content"
    shutil.copytree(Path(curtsy.__file__).parent / "content", content, ignore=shutil.ignore_patterns("*.so"))
    (content / compiled.DIGEST_FILE).write_text("of an older build")
    (content / "walk.py").write_text("no Python here")
    with pytest.raises(build_modules.NotBuilt):
        build_modules.build(tmp_path)
    assert not (content / compiled.DIGEST_FILE).exists()
    assert not list(tmp_path.rglob("*.so"))
