"""The examples of docs/how-to/python.md, as a reader would run them: one after another, in one folder."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_site import Say, SmallSite, linking

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "python.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python(?: (\w+))?\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PATHS = ("/geese", "/ducks", "/swans", "/teals")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    text = f"<p>{'They fly, they swim and they walk. ' * 20}</p>".encode()
    pages = {path: Say(linking("/", *PATHS, title=f"About {path[1:]}").body + text) for path in PATHS}
    with SmallSite({"/": linking(*PATHS, title="Birds"), **pages}) as site:
        rule = f"www.example.com=127.0.0.1:{site.port}"
        given = {
            "CURTSY_RESOLVE": rule,
            "CURTSY_DELAY_S": "0.1",
            "CURTSY_LATENCY_FACTOR": "0",
            "PYTHONWARNINGS": "error",
        }
        yield os.environ | given | {"HOME": str(tmp_path_factory.mktemp("examples"))}


@pytest.fixture(scope="module")
def port(environment: dict[str, str]) -> Iterator[int]:
    """`curtsy serve` in the folder of the examples."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    words = ["serve", "--port", str(port), "--processes", "1"]
    log = Path(environment["HOME"], "serve.log")
    with log.open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "curtsy", *words], cwd=environment["HOME"], env=environment, stderr=err
        )
    end = time.monotonic() + 30
    while b"Serving on" not in log.read_bytes():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end
        time.sleep(0.02)
    yield port
    process.terminate()
    process.wait(40)


def run(example: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=environment["HOME"], env=environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


#: those that have a test of their own below
_APART = ("curtsy.resume(", "score=")


@pytest.mark.parametrize(
    "number", [n for n, (_, example) in enumerate(EXAMPLES) if not any(word in example for word in _APART)]
)
def test_an_example_runs(number: int, environment: dict[str, str], request: pytest.FixtureRequest) -> None:
    kind, example = EXAMPLES[number]
    if kind == "server":
        example = example.replace(":8080", f":{request.getfixturevalue('port')}")
    said = run(example, environment)
    if "max_pages=20" in example and "for page" in example and kind != "server":
        assert all(path[1:] in said for path in PATHS)
    assert said or "import curtsy" in example


def test_the_examples_end_as_they_say(environment: dict[str, str]) -> None:
    (example,) = (example for _, example in EXAMPLES if "curtsy.resume(" in example)
    lines = run(example, environment).splitlines()
    assert lines[0].endswith(" running")
    assert "finished" in lines
    assert len({line for line in lines[1:] if line.startswith("http://www.example.com/")}) == 5


def test_the_records_of_the_example_are_those_of_its_functions(environment: dict[str, str]) -> None:
    (example,) = (example for _, example in EXAMPLES if "score=" in example)
    found = dict(line.split() for line in run(example, environment).splitlines())
    assert found == {"geese": "100.0", "swans": "100.0", "ducks": "20.0", "teals": "20.0"}
